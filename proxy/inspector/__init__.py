"""The inspector: the last exchanges, kept in memory, and a page that shows them."""
