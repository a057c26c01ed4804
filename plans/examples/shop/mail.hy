(require quoth [def-cognitive-tool])

(def-cognitive-tool search-contacts
  "Find the address of a person."
  :parameters [name {:type str  :doc "Who"}]
  :effects    [:reads]
  :body       [{"name" "Ben"  "email" "ben@shop.example"}])

(def-cognitive-tool send-file
  "Send a file by mail."
  :parameters [to   {:type str  :doc "Address"}
               path {:type path  :doc "The file"}]
  :effects    [:net]
  :body       f"Sent {path} to {to}.")
