"""Fixed sequences: as many events as the pattern has variables, with conditions between any two of them."""
