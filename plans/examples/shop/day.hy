(allow (shell :argv ["python" "-m" (one-of "pytest" "unittest") ...]))
(allow (edit-file :path (matches r"\.py$")))
(allow (fetch :url (and (scheme "https") (host "docs.python.org"))))
