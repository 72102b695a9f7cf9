"""What the proxy is started with, read from a file of TOML, the environment and the command line."""
