"""Where the values of a call come from: the person's words, a field of a result, somebody's text, or nowhere."""
