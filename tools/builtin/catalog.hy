"Tools that look tools up, for a tool list with one line for each tool (--belt search). Only tables for that
list have them. Descriptions of tools come from ctx.catalog."

(eval-when-compile (require quoth.tools.macros [def-cognitive-tool]))
(import
  quoth.tools.errors [ToolError UnknownToolError])

(defn catalog-of [ctx]
  "The catalog of the host. Raises ToolError without one."
  (when (is ctx.catalog None)
    (raise (ToolError "This agent has no catalog of tools.")))
  ctx.catalog)

(def-cognitive-tool describe
  "Show one tool in full: what it does, its parameters, an example."
  :parameters [name {:type str  :doc "Name of the tool"}]
  :effects    [:reads]
  :free-text  True
  :examples   [(describe :name "describe")]
  :body       (try
                (.describe (catalog-of ctx) name)
                (except [error UnknownToolError]
                  (raise (ToolError (str error)) :from None))))

(def-cognitive-tool search-tools
  "Find tools for a purpose: one line for each tool that matches the words, the best first."
  :parameters [words {:type str  :doc "What the tool should do"}
               limit {:type int  :doc "Maximum number of tools"  :default 10  :min 1  :max 50}]
  :effects    [:reads]
  :free-text  True
  :examples   [(search-tools :words "read a text file")]
  :body       (await (.search (catalog-of ctx) words limit)))
