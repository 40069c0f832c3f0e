"""Your own conversations: files of any known form, the speakers' roles, and what is wrong with the data."""
