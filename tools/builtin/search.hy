"Searching the text of the workspace's files.
Every file is opened through ctx.workspace, never by its path."

(eval-when-compile (require quoth.tools.macros [def-cognitive-tool]))
(import
  quoth.tools.errors [ToolError]
  quoth.tools.safe_regex [compiled]
  quoth.tools.text [count]
  quoth.tools.registry.param_types [WorkspacePath]
  quoth.tools.storage.paths [fits]
  quoth.tools.call.context [inside-workspace])

;; * Bounds

(setv MAX-FILE 5_000_000)
  ; Bytes; a larger file is skipped.
(setv MOST-NAMED 3)
  ; Skipped files that the message names.
(setv MAX-LINE 300)
  ; Characters of a line that are shown.
(setv PIECE 100_000  OVERLAP 10_000)
  ; Characters of a long line that are searched at a time: the deadline is checked between pieces.
(setv SECONDS 20)
  ; For the whole search; it also stops patterns that backtrack for ever.

;; * Helpers

(defn seconds-to [deadline]
  "The seconds that are left. Raises TimeoutError if none are."
  (import time)
  (setv left (- deadline (time.monotonic)))
  (when (<= left 0)
    (raise (TimeoutError)))
  left)

(defn in-line? [expression line deadline]
  "Whether a line matches. A long line is searched piece by piece; a match that ends at the end of a piece is
  tried again on the rest of the line."
  (setv start 0)
  (while True
    (setv end (min (len line) (+ start PIECE))
          hit (.search expression line start end :timeout (seconds-to deadline) :concurrent True))
    (when (and hit (or (= end (len line))
                       (< (.end hit) end)
                       (.match expression line (.start hit) :timeout (seconds-to deadline) :concurrent True)))
      (return True))
    (when (= end (len line))
      (return False))
    (setv start (- end OVERLAP))))

(defn too-large? [file]
  "Whether a file is skipped because of its size, without reading it."
  (try
    (> (. (.lstat file) st-size) MAX-FILE)
    (except [OSError]
      False)))

(defn hits-in [workspace shown expression deadline]
  "The matching lines of one file, as they are found; none for a binary or unreadable one."
  (try
    (with [stream (.open-read workspace (WorkspacePath shown))]
      (setv data (.read stream (+ MAX-FILE 1))))
    (except [ToolError]
      (return)))
  (when (or (> (len data) MAX-FILE) (in b"\0" (cut data 0 8192)))
    (return))
  (for [[number line] (enumerate (.splitlines (.decode data "utf-8" "replace")) 1)]
    (when (in-line? expression line deadline)
      (yield {"path" shown  "line" number  "text" (cut line 0 MAX-LINE)}))))

(defn tell-skipped [large say]
  "Report the files that were too large to search."
  (when large
    (setv named (cut large 0 MOST-NAMED)
          more (- (len large) (len named)))
    (say (+ f"Skipped {(count (len large) "file")} larger than {(// MAX-FILE 1_000_000)} MB ("
            (.join ", " named)
            (if more f" and {more} more)." ").")))))

(defn search [ctx pattern path glob limit all]
  (import time  quoth.tools.builtin.prefilter [sieve]  quoth.tools.call.ignored [Ignored])
  (setv expression (compiled pattern)
        wanted (sieve pattern)
        deadline (+ (time.monotonic) SECONDS)
        hits []
        left-out 0
        large []
        disk (.on-disk ctx.workspace)  ; an editor cannot list its buffers
        ignored (Ignored ctx.workspace.root))
  (try
    (for [file (.walk ctx.workspace path :all all :ignored ignored)]
      (seconds-to deadline)
      (when (not (fits (if (in "/" glob) (.spelling ctx.workspace file) file.name) glob))
        (continue))
      (setv shown (.spelling ctx.workspace file))
      (cond
        (not (.may-read ctx shown))
          (+= left-out 1)
        (too-large? file)
          (.append large shown)
        (and wanted (not (.may-be-in wanted file)))
          (continue)
        True
          (for [hit (hits-in disk shown expression deadline)]
            (.append hits hit)
            (when (> (len hits) limit)
              (break))))
      (when (> (len hits) limit)
        (.say ctx f"There are more than {limit} hits; only the first are shown.")
        (break)))
    (except [TimeoutError]
      (setv late (+ f"The search took longer than {SECONDS} s; "
                    "use a simpler pattern or a smaller folder."))
      (when (not hits)
        (raise (ToolError late) :from None))
      (.say ctx f"{late} These hits were found before it stopped.")))
  (tell-skipped large ctx.say)
  (when left-out
    (.say ctx f"Skipped {(count left-out "file")}: the rules forbid reading."))
  (.tell ignored ctx.say)
  (when (not (or hits left-out large))  ; only if every file was searched
    (import quoth.tools.builtin.nearby [near-search])  ; here: most searches find something
    (setv near (near-search ctx pattern path glob))
    (when near
      (.say ctx near)))
  (cut hits 0 limit))

;; * Tools

(def-cognitive-tool grep-search
  "Search the files under PATH for a regular expression. Each hit has path, line and text."
  :parameters [pattern {:type str  :doc "Regular expression"}
               path    {:type path :doc "File or folder"  :default "."}
               glob    {:type str  :doc "Only files with names like *.py"  :default "*"}
               limit   {:type int  :doc "Maximum number of hits"  :default 50  :min 1}
               all     {:type bool  :doc "Include files that .gitignore names"  :default False}]
  :effects    [:reads]
  :free-text  True
  :guard      (inside-workspace path)
  :examples   [(grep-search :pattern "def main" :path "<folder>")]
  :body       (search ctx pattern path glob limit all))
