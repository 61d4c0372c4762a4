"""The command line: parse, call, print. The only code that prints."""
