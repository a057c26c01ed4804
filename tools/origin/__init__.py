"""Where the values of a call come from: the person's words, a field of a result, a text, or nowhere."""
