"Searching the text of the workspace's files.
Must not open a path by itself: every file is reached through ctx.workspace."

(eval-when-compile (require tools.macros [def-cognitive-tool]))
  ; While compiling only: at run time Hy's require looks through the whole stack, 10 ms a file.
(import
  fnmatch [fnmatch]
  tools.context [ToolError]
  tools.patterns [compiled]
  tools.workspace [inside-workspace])

;; * Bounds

(setv MAX-FILE 5_000_000)
  ; Bytes; a larger file is passed over.
(setv MAX-LINE 300)
  ; Characters of a line that are shown.
(setv SECONDS 20)
  ; For the whole search; a pattern that backtracks for ever ends here.

;; * Helpers

(defn hits-in [workspace file expression deadline room]
  "The first ROOM matching lines of one file; none for a binary or unreadable one."
  (import time)
  (setv shown (.shown workspace file)  hits [])
  (try
    (with [stream (.open-read workspace shown)]
      (setv data (.read stream (+ MAX-FILE 1))))
    (except [ToolError]
      (return hits)))
  (when (or (> (len data) MAX-FILE) (in b"\0" (cut data 0 8192)))
    (return hits))
  (for [[number line] (enumerate (.splitlines (.decode data "utf-8" "replace")) 1)]
    (setv left (- deadline (time.monotonic)))
    (when (<= left 0)
      (raise (TimeoutError)))
    (when (.search expression line :timeout left :concurrent True)
      (.append hits {"path" shown  "line" number  "text" (cut line 0 MAX-LINE)})
      (when (= (len hits) room)
        (break))))
  hits)

(defn search [ctx pattern path glob limit]
  (import time)
  (setv expression (compiled pattern)
        deadline (+ (time.monotonic) SECONDS)
        hits [])
  (try
    (for [file (.walk ctx.workspace path)]
      (when (fnmatch file.name glob)
        (.extend hits (hits-in ctx.workspace file expression deadline (- (+ limit 1) (len hits))))
        (when (> (len hits) limit)
          (.say ctx f"There are more than {limit} hits; only the first are shown.")
          (break))))
    (except [TimeoutError]
      (raise (ToolError (+ f"The search took longer than {SECONDS} s; "
                           "use a simpler pattern or a smaller folder."))
             :from None)))
  (cut hits 0 limit))

;; * Tools

(def-cognitive-tool grep-search
  "Search the files under PATH for a regular expression. Each hit has path, line and text."
  :parameters [pattern {:type str  :doc "Regular expression"}
               path    {:type str  :doc "File or folder"  :default "."}
               glob    {:type str  :doc "Only files so named, such as *.py"  :default "*"}
               limit   {:type int  :doc "At most so many hits"  :default 50  :min 1}]
  :effects    [:reads]
  :guard      (inside-workspace path)
  :examples   [(grep-search :pattern "def main" :path "src")]
  :body       (search ctx pattern path glob limit))
