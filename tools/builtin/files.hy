"Reading, listing, writing and editing files of the workspace.
Every file is opened through ctx.workspace, never by its path."

(eval-when-compile (require quoth.tools.macros [def-cognitive-tool]))
(import
  quoth.tools.errors [ToolError ToolFailure]
  quoth.tools.text [count file-name number-of]
  quoth.tools.lisp.printer [print-string]
  quoth.tools.storage.paths [fits]
  quoth.tools.call.context [inside-workspace]
  quoth.tools.registry.param-types [written])

;; * Bounds

(setv MAX-READ 200_000)
  ; Characters that one read returns.
(setv MAX-FILE 5_000_000)
  ; Bytes of an edited file, and of a written text.

;; * Helpers

(defn reader [ctx]
  "The identity of the reading and writing agent: each agent has its own set of read files."
  f"{ctx.session} {ctx.user} {ctx.agent-id}")

(defn opened [ctx path]
  "A file opened for reading. Raises ToolError; for a missing file it names a similar one."
  (try
    (.open-read ctx.workspace path)
    (except [error ToolError]
      (when (not (.startswith (str error) "There is no file"))
        (raise))
      (import quoth.tools.builtin.nearby [near-file])  ; here: most files are there
      (raise (ToolError f"{error}{(near-file ctx (written path))}") :from None))))

(defn by-model? [call]
  "Whether a call comes from a reply of a model, directly or through a program. A person, a plan and the body
  of a tool know the files they change."
  (and (> call.round 0) (!= call.route "tool")))

(defn require-known [ctx call path]
  "True. Raises ToolFailure if a model would change a file that it has not read: models have done so blindly.
  This is checked in the guard, before a person is asked. A resumed call was checked when it began, and an
  edited call is a person's; a resumed session remembers the files it has read."
  (when (and (by-model? call)
             (not call.resumed)
             (not (.endswith call.key "/edited"))
             (.exists (.resolve ctx.workspace path))
             (not (.has-seen ctx.workspace (reader ctx) path))
             (not-in (.resolve ctx.workspace path) (map ctx.workspace.locate (ctx.known-files))))
    (raise (ToolFailure "error" f"Read it first: (read-file :path {(print-string (written path))})")))
  True)

(defn bytes-of [ctx path]
  "The content of a file; of a larger file the first MAX-FILE + 1 bytes."
  (with [file (opened ctx path)]
    (.read file (+ MAX-FILE 1))))

(defn text-of [ctx path [data None]]
  "The text of a file, with its line endings unchanged. Raises ToolError for a binary or too large file."
  (setv data (if (is data None)  (bytes-of ctx path)  data))
  (when (> (len data) MAX-FILE)
    (raise (ToolError f"{(file-name path)} is larger than {MAX-FILE} bytes; search it with grep-search.")))
  (when (in b"\0" data)
    (raise (ToolError f"{(file-name path)} is a binary file of {(len data)} bytes.")))
  (try
    (.decode data "utf-8")
    (except [UnicodeDecodeError]
      (raise (ToolError f"{(file-name path)} is not UTF-8 text ({(len data)} bytes).") :from None))))

(defn some-lines [ctx path text start limit]
  "LIMIT lines from line START on, cut at MAX-READ characters, with a message about the omitted part."
  (setv lines (.splitlines text :keepends True)
        chosen (cut lines (- start 1) (+ start limit -1))
        shown (.join "" chosen))
  (when (and (> start 1) (not chosen))
    (raise (ToolError f"{(file-name path)} has only {(number-of (len lines) "line")}.")))
  (setv last (+ start (len chosen) -1))
  (when (> (len (get (or chosen [""]) 0)) MAX-READ)
    (.say ctx f"Line {start} is longer than {MAX-READ} characters; only its beginning can be read.")
    (return (cut (get chosen 0) 0 MAX-READ)))
  (when (> (len shown) MAX-READ)
    (setv shown (cut shown 0 MAX-READ)
          last (+ start (len (.splitlines shown)) -2))
    (.say ctx f"The text is cut after {MAX-READ} characters, in line {(+ last 1)}."))
  (when (< last (len lines))
    (.say ctx f"Lines {start} to {last} of {(len lines)}; read on with :start {(+ last 1)}."))
  shown)

(defn contents [ctx path data start limit]
  "A file as a model is shown it: an image, or lines of its text."
  (import quoth.tools.call.images [image-value is-image])  ; here: many calls read no file
  (if (is-image data)
      (image-value ctx data (written path))
      (some-lines ctx path (text-of ctx path data) start limit)))

(defn listed [ctx path pattern limit all]
  "The files below a folder that match a glob, without files that the rules forbid naming."
  (import quoth.tools.call.ignored [Ignored])  ; here: few calls list files
  (setv found []  left-out 0  ignored (Ignored ctx.workspace.root))
  (for [file (.walk ctx.workspace path :all all :ignored ignored)]
    (setv shown (.spelling ctx.workspace file))
    (when (fits shown pattern)
      (when (= (len found) limit)
        (.say ctx f"There are more than {limit} files; only the first are listed.")
        (break))
      (if (.may-list ctx shown)
          (.append found shown)
          (+= left-out 1))))
  (when left-out
    (.say ctx f"Skipped {(count left-out "file")}: the rules forbid listing."))
  (.tell ignored ctx.say)
  (when (not found)
    (import quoth.tools.builtin.nearby [near-list])  ; here: most lists are not empty
    (setv near (near-list ctx path pattern))
    (when near
      (.say ctx near)))
  found)

(defn edited [path text old new edits everywhere]
  "TEXT with the pieces replaced, and the number of replacements."
  (import quoth.tools.builtin.edits [pieces replaced])  ; here: most sessions begin with reading
  (replaced (file-name path) text (pieces old new edits) everywhere MAX-FILE))

(defn standing [ctx path]
  "The content of a file for a question to a person; None for a missing file."
  (if (.exists ctx.workspace path)
      (with [file (.open-read ctx.workspace path)]
        (setv data (.read file (+ MAX-FILE 1)))
        (when (> (len data) MAX-FILE)
          (raise (ToolError f"{(file-name path)} is larger than {MAX-FILE} bytes, too large to compare.")))
        data)
      None))

;; * Tools

(def-cognitive-tool read-file
  "Read a text file, or an image."
  :parameters [path  {:type path :doc "File"}
               start {:type int  :doc "First line"  :default 1  :min 1}
               limit {:type int  :doc "Maximum number of lines"  :default 2000  :min 1}]
  :effects    [:reads]
  :free-text  True
  :guard      (inside-workspace path)
  :examples   [(read-file :path "<folder>/<file>")]
  :body       (do
                (setv data (bytes-of ctx path)
                      shown (contents ctx path data start limit))
                (.saw ctx.workspace (reader ctx) path data)  ; after contents, which may raise
                shown))

(def-cognitive-tool list-files
  "List the files in a folder and its subfolders."
  :parameters [path    {:type path :doc "Folder"  :default "."}
               pattern {:type str  :doc "Glob such as *.py"  :default "*"}
               limit   {:type int  :doc "Maximum number of files"  :default 500  :min 1}
               all     {:type bool  :doc "Include files that .gitignore names"  :default False}]
  :effects    [:reads]
  :free-text  True  ; the authors of the files chose the names
  :guard      (inside-workspace path)
  :examples   [(list-files :path "<folder>" :pattern "*.py")]
  :body       (listed ctx path pattern limit all))

(def-cognitive-tool write-file
  "Write a text file: create it, or replace all of its text."
  :parameters [path    {:type path :doc "File"}
               content {:type str  :doc "The whole new text"}]
  :effects    [:writes]
  :guard      (and (require-known ctx call path) (inside-workspace path))
  :changes    [[path (standing ctx path) content]]
  :examples   [(write-file :path "<file>" :content "one\ntwo\n")]
  :body       (do
                (setv data (.encode content "utf-8"))
                (when (> (len data) MAX-FILE)
                  (raise (ToolError f"{(file-name path)}: the text is longer than {MAX-FILE} bytes.")))
                (setv new (.write ctx.workspace path data :reader (reader ctx) :say ctx.say))
                (.effect ctx f"{(if new "created" "wrote")}:{path}")
                f"{(if new "Created" "Replaced")} {(file-name path)}, {(count (len data) "byte")}."))

(def-cognitive-tool edit-file
  "Replace one piece of a text file with another, or several pieces, or add lines at its end."
  :parameters [path  {:type path :doc "File"}
               old   {:type str
                      :doc "Exact text to replace; it must occur once; without it, new is added at the end"
                      :default None}
               new   {:type str  :doc "Text to put there"  :default None}
               all   {:type bool  :doc "Replace every occurrence"  :default False}
               edits {:type (get list (get list str))
                      :doc "Several at once, all or none: [[old new] …]"  :default None}]
  :effects    [:reads :writes]
  :guard      (and (require-known ctx call path) (inside-workspace path))
  :changes    (do
                (setv text (text-of ctx path))
                [[path text (get (edited path text old new edits all) 0)]])
  :free-text  True
  :examples   [(edit-file :path "<file>" :old "version = 1" :new "version = 2")]
  :body       (do
                (import quoth.tools.builtin.edits [changed-lines])
                (with [_ (.alone ctx.workspace path)]
                  (setv text (text-of ctx path)
                        #(after many) (edited path text old new edits all))
                  (.write ctx.workspace path (.encode after)
                          :before (.encode text) :reader (reader ctx) :say ctx.say))
                (.effect ctx f"wrote:{path}")
                (setv done (if (or old edits)  f"Replaced {many} in"  "Added to"))
                (.rstrip f"{done} {(file-name path)}.\n{(changed-lines text after)}" "\n")))
