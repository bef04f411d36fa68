"""The command line, one file a command; nothing heavy is imported before a command needs it."""

import gc

# A short command mostly imports, and what is imported stays: looking for garbage in it again and again takes a sixth of
# the time, and even a look or two a tenth.
gc.set_threshold(500_000, 20, 20)
