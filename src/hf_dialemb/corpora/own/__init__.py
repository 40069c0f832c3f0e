"""Your own conversations: files, tables, transcripts and Hub datasets, their roles, and what is wrong with them."""
