"""Response selection: how often the response that really followed is among the first of many candidates."""
