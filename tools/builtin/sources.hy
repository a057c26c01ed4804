"Reading the data sources that the host has opened beside the workspace.
Must not open a path by itself: what a source is stays behind ctx.sources."

(eval-when-compile (require quoth.tools.macros [def-cognitive-tool]))
(import
  quoth.tools.builtin.files [some-lines]
  quoth.tools.errors [ToolFailure]
  quoth.tools.lisp.forms [CallForm])

(defn :async listed [name ctx]
  (when name
    (setv read (CallForm "sources" {"operation" "read"  "name" name}))
    (raise (ToolFailure "invalid" f"list takes no name; {read} shows what is in it.")))
  (lfor  source (await (.list-sources ctx.sources))
         {"name" source.name  "description" source.description}))

(defn :async part [name start limit ctx]
  (when (not (.strip name))
    (setv all (CallForm "sources" {"operation" "list"}))
    (raise (ToolFailure "invalid" f"read needs the name of a source; {all} names them.")))
  (some-lines ctx name (await (.read-source ctx.sources name)) start limit))

(def-cognitive-tool sources
  "Read data that was opened for you beside the workspace: list names the sources; read shows a text, or the
  files of a folder, each of which can be read by its name."
  :parameters [operation {:choices ["list" "read"]  :doc "What to do"}
               name      {:type str  :doc "A source, or a file in it"  :default ""}
               start     {:type int  :doc "First line"  :default 1  :min 1}
               limit     {:type int  :doc "At most so many lines"  :default 2000  :min 1}]
  :effects    [:reads]
  :shown      False
  :free-text  True
  :examples   [(sources :operation "list")
               (sources :operation "read" :name "manual/install.org")]
  :body       (if (= operation "list")
                  (await (listed name ctx))
                  (await (part name start limit ctx))))
