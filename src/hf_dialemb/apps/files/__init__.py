"""Your own conversations.

Files of any known form, the speakers' roles, and what is wrong with the data.
"""
