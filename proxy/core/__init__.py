"""The sans-I/O core: values, the reader of model output, the writer of prompts."""
