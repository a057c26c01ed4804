"Fetches web pages, one at a time.
Only tools/web opens connections, because it checks every address first."

(eval-when-compile (require quoth.tools.macros [def-cognitive-tool]))

(defn may-fetch [url ctx]
  (import quoth.tools.web.fetch [may-fetch :as allowed])  ; here: most commands fetch nothing
  (allowed url ctx))

(defn :async fetched [url wanted ctx]
  (import quoth.tools.web.fetch [fetch])
  (await (fetch url wanted ctx)))

(def-cognitive-tool fetch
  "Get a web page as Markdown."
  :parameters [url {:type str  :doc "http or https address"}
               as  {:choices ["markdown" "text" "json" "raw"]  :default "markdown"}]
  :effects    [:net]
  :timeout    60
  :free-text  True
  :guard      (may-fetch url ctx)
  :examples   [(fetch :url "https://example.org/")]
  :body       (await (fetched url as ctx)))
