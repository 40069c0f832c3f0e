"""The applications: files of your own, topics, flows, search and the command line."""
