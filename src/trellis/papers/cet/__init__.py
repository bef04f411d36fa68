"""The CET paper's algorithms: baseline, SASE, M-CET, T-CET, H-CET with its optimizer, and flattened sequences."""
