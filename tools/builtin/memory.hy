"Memory blocks: changing them, archiving them, and searching memory.
ctx.memory and ctx.search check permissions and limits."

(eval-when-compile (require quoth.tools.macros [def-cognitive-tool]))
(import
  quoth.tools.call.call [ALLOW ask deny]
  quoth.tools.call.services [NO-MEMORY NO-SEARCH NO-SHARED-BLOCKS]
  quoth.tools.errors [ToolError ToolFailure]
  quoth.tools.lisp.forms [CallForm]
  quoth.tools.text [number-of short])

;; * Bounds

(setv SHOWN 1_000)
  ; Characters of a changed block that are shown; of a longer block only the end.
(setv END 200)
(setv HIT 600)
  ; Characters of a hit; recall reads the rest.
(setv LISTED 200)

;; * Fields

(defn in-words [names]
  (.join " and " (gfor name names f":{name}")))

(defn check-fields [operation needed possible given]
  "Refuse a call without a field that its operation needs, or with a field that it does not use."
  (setv known (+ needed possible)
        optional (if possible  f"{(if needed " and, if you like, " "")}{(in-words possible)}"  "")
        takes f"{operation} takes {(or (+ (in-words needed) optional) "no field")}"
        missing (lfor name needed  :if (is (get given name) None)  name)
        unused (lfor [name value] (.items given)
                     :if (not (or (is value None) (in name known)))  name))
  (when missing
    (setv are (if (> (len missing) 1) "are" "is"))
    (raise (ToolFailure "invalid" f"{takes}; {(in-words missing)} {are} missing.")))
  (when unused
    (raise (ToolFailure "invalid" f"{takes}, not {(in-words unused)}."))))

(defn must-hold [text what]
  (when (not (.strip text))
    (raise (ToolFailure "invalid" f"The {what} is empty."))))

;; * Results: success, a sentence, and data

(defn told [message #** seen]
  {"success" True  "message" message  #** seen})

(defn named [block]
  (if block.owner  f"{block.label} (of {block.owner})"  block.label))

(defn fullness [block]
  f"It has {(len block.text) :,} of {block.limit :,} characters")

(defn changed [message block]
  "The result of a change: the block's new text, or only its end if it is long."
  (if (<= (len block.text) SHOWN)
      (told f"{message} {(fullness block)}." :label block.label :content block.text)
      (told f"{message} {(fullness block)} and ends: …{(cut block.text (- END) None)}" :label block.label)))

(defn whole [message block]
  (told f"{message} {(fullness block)}." :label block.label :content block.text))

;; * Existing blocks

(defn :async found [ctx label]
  "The block of that label. Raises the store's error, which names the nearest label."
  (setv block (await (.get-block ctx.memory label)))
  (when (is block None)
    (await (.persist-block ctx.memory label))
    (raise (ToolError f"There is no block named {label}.")))
  block)

(defn in-view [block]
  "Refuse an archival block if a core or working block is needed."
  (when (= block.kind "archival")
    (raise (ToolError f"{(named block)} is archival; use recall, or load it first."))))

(defn :async in-archive [ctx label]
  (setv block (await (found ctx label)))
  (when (!= block.kind "archival")
    (raise (ToolError f"{(named block)} is {block.kind}, not archival; use block."))))

;; * The operations of block

(defn :async begin [ctx label content]
  "Create the core block for its first text; None if another writer has just created it."
  (must-hold content "content")
  (try
    (setv block (await (.create-block ctx.memory label content :kind "core")))
    (except [ToolError]
      (when (is (await (.get-block ctx.memory label)) None)
        (raise))
      (return None)))
  (changed f"There was no block {label}, so a core block was created." block))

(defn :async append-block [ctx label content]
  (setv there (await (.get-block ctx.memory label)))
  (when (is there None)
    (setv begun (await (begin ctx label content)))
    (when begun
      (return begun)))
  (when there
    (in-view there))
  (setv block (await (.append-to-block ctx.memory label content)))
  (changed f"Appended to {(named block)}." block))

(defn :async replace-block [ctx label old-content new-content]
  (when (not old-content)
    (raise (ToolFailure "invalid" "The old-content is empty.")))
  (setv before (await (found ctx label)))
  (in-view before)
  (setv block (await (.replace-in-block ctx.memory label old-content new-content))
        times (.count before.text old-content))
  (changed f"Replaced {(number-of times "place")} in {(named block)}." block))

(defn :async read-block [ctx label]
  (setv block (await (found ctx label)))
  (in-view block)
  (whole f"{(named block)} is a {block.kind} block ({block.permission})." block))

(defn :async undo-block [ctx label]
  (setv block (await (.undo ctx.memory label))
        [taken #* older] (await (.history ctx.memory label))
        back (next (gfor one older  :if (= one.text block.text)  one)))
  (changed (+ f"{(named block)} has the text of version {back.version} again, instead of version"
              f" {taken.version}. Another undo restores version {taken.version}.")
           block))

(defn :async way-to [ctx label]
  "\"over\" if a copy to that label would replace a block, otherwise \"to\"."
  (if (and label (await (.get-block ctx.memory label)))  "over"  "to"))

(defn :async archive-block [ctx label to]
  (setv before (await (found ctx label))
        way (if (= (await (way-to ctx to)) "over")  "over"  "as")
        block (await (.move-block ctx.memory label "archival" :to (or to ""))))
  (told (if (= block.label label)
            f"{(named block)} was {before.kind} and is archival now; search finds it, recall reads it."
            f"{label} was archived {way} {(named block)} and is not there any more.")
        :label block.label))

(defn :async load-block [ctx label to]
  (setv before (await (found ctx label)))
  (when (!= before.kind "archival")
    (raise (ToolError f"{(named before)} is {before.kind}; only archival blocks can be loaded.")))
  (setv way (await (way-to ctx to))
        block (await (.move-block ctx.memory label "working" :to (or to ""))))
  (whole (if (= block.label label)
             f"{(named block)} was archival and is working now."
             f"{label} was copied {way} {(named block)}, which is {block.kind}; {label} stays archival.")
         block))

(defn :async swap-block [ctx archive-label load-label to]
  (setv block (await (.swap-blocks ctx.memory archive-label load-label :to (or to "")))
        message f"{archive-label} is archival now, and {(named block)} is {block.kind}.")
  (when (!= block.label load-label)
    (setv stays (await (.get-block ctx.memory load-label)))
    (+= message (if stays
                    f" It is a copy: {load-label} stays archival, as deleting it needs the permission admin."
                    f" {load-label} was moved there.")))
  (whole message block))

(defn :async list-block [ctx]
  (setv own (await (.list-blocks ctx.memory))
        shared (if (is ctx.shared-blocks NO-SHARED-BLOCKS)
                   []
                   (await (.list-shared-blocks ctx.shared-blocks)))
        order ["core" "working" "archival"]
        every (sorted [#* own #* shared] :key (fn [block] (.index order block.kind)))
        seen (lfor block (cut every LISTED)
               {"label" block.label  "kind" block.kind  "permission" block.permission
                "size" (len block.text)  "limit" block.limit
                #** (if block.description {"description" block.description} {})
                #** (if block.owner {"owner" block.owner} {})})
        more (- (len every) (len seen)))
  (told (+ (if every  f"{(number-of (len every) "block")}."  "There are no blocks yet.")
           (if more  f" {more :,} archival blocks are not listed; search finds them."  ""))
        :blocks seen))

;; * The operations of recall

(defn :async insert-recall [ctx label content]
  (must-hold content "content")
  (setv block (await (.create-block ctx.memory label content :kind "archival")))
  (changed f"Put {label} into the archive." block))

(defn :async append-recall [ctx label content]
  (await (in-archive ctx label))
  (setv block (await (.append-to-block ctx.memory label content)))
  (changed f"Appended to {(named block)}." block))

(defn :async read-recall [ctx label]
  (await (in-archive ctx label))
  (setv block (await (found ctx label)))
  (whole f"{(named block)} is in the archive ({block.permission})." block))

(defn :async delete-recall [ctx label]
  (await (in-archive ctx label))
  (await (.delete-block ctx.memory label))
  (told f"{label} was deleted." :label label))

;; * One call

(setv BLOCK {"append"  [append-block ["label" "content"] []]
             "replace" [replace-block ["label" "old-content" "new-content"] []]
             "read"    [read-block ["label"] []]
             "undo"    [undo-block ["label"] []]
             "archive" [archive-block ["label"] ["to"]]
             "load"    [load-block ["label"] ["to"]]
             "swap"    [swap-block ["archive-label" "load-label"] ["to"]]
             "list"    [list-block [] []]}
      RECALL {"insert" [insert-recall ["label" "content"] []]
              "append" [append-recall ["label" "content"] []]
              "read"   [read-recall ["label"] []]
              "delete" [delete-recall ["label"] []]})
  ; The function of each operation, the fields it needs, and optional fields.
(setv LOOKS #{"list" "read"})

(defn :async memory-call [table operation ctx given]
  "Run an operation with its fields, and record its effect."
  (setv [does needed possible] (get table operation))
  (check-fields operation needed possible given)
  (setv result (await (does ctx #* (gfor name (+ needed possible)  (get given name)))))
  (when (not-in operation LOOKS)
    (.effect ctx f"memory:{operation} {(or (.get given "label") (.get given "archive-label"))}"))
  result)

;; * Rules

(defn :async rules-say [ctx tool operation label]
  "The rules' verdict (allow, ask or deny) on an operation on the block of that label, and its reason."
  (setv form (CallForm tool {"operation" operation  "label" label})
        seen (await (ctx.look form (fn [value] False) :guards False)))
  (if (in seen.verdict ["ask" "deny"])
      [seen.verdict (.removesuffix seen.reason "; its guard was not asked")]
      ["allow" ""]))

(defn :async of-blocks [ctx operation label]
  "The verdict of the rules about the tool block on reading the block of that label. A rule that names no
  label is about that tool, not about memory."
  (setv [verdict why] (await (rules-say ctx "block" operation label)))
  (if (in ":label" why)  [verdict why]  ["allow" ""]))

(defn :async labels-ruled [tool operation ctx label [archive-label None] [load-label None] [to None]]
  "Guard: a rule about a :label applies to each field that names a block; a call whose result has a block's
  text also needs permission to read that block."
  (when (is ctx.look None)
    (return ALLOW))
  (setv tells (in operation ["append" "replace" "undo" "load" "swap"])
        source (if (= operation "swap")  load-label  label)
        readers (if (in operation ["load" "swap"])  ["block" "recall"]  [tool])
        asked (+ (lfor name [archive-label load-label to] :if name  [tool operation name])
                 (lfor reader readers :if (and tells source)  [reader "read" source]))
        asks [])
  (setv said (lfor one asked  (await (rules-say ctx #* one))))
  (when (and (= tool "recall") (in operation ["read" "append"]))
    (.append said (await (of-blocks ctx "read" label))))
  (for [[verdict why] said]
    (when (= verdict "deny")
      (return (deny why)))
    (when (and (= verdict "ask") (not-in why asks))
      (.append asks why)))
  (if asks  (ask (.join "; " asks))  ALLOW))

;; * Searching

(defn :async readable? [ctx hit known]
  "Whether the rules allow reading the block of a hit, with either tool that reads it; KNOWN caches the answer
  by label."
  (when (or (is ctx.look None) (= hit.source "conversations"))
    (return True))
  (when (not-in hit.label known)
    (setv (get known hit.label) True)
    (for [tool ["block" "recall"]]
      (setv [verdict _] (await (rules-say ctx tool "read" hit.label)))
      (when (in verdict ["deny" "ask"])
        (setv (get known hit.label) False))))
  (get known hit.label))

(defn hit-of [hit]
  "A hit as it is shown, without empty fields."
  (setv text (short hit.text HIT)
        more {"owner" hit.owner  "at" hit.at})
  {"label" hit.label  "text" text  "source" hit.source  "score" (round hit.score 3)
   #** (dfor [name value] (.items more)  :if value  name value)})

(defn :async hits-for [ctx query scope options]
  "The hits of a search; from the memory itself if the host has no search."
  (if (and (is ctx.services.search NO-SEARCH)
           (is-not ctx.memory NO-MEMORY)
           (!= options.domain "conversations")
           (not (or options.since options.until options.semantic)))
      (await (.search-blocks ctx.memory query options.limit))
      (await (.search ctx query scope options))))

(defn :async searched [ctx query scope #** options]
  (must-hold query "query")
  (import quoth.tools.call.service-types [SearchOptions])
  (setv hits (await (hits-for ctx query scope (SearchOptions #** options)))
        known {}
        seen (lfor hit hits  :if (await (readable? ctx hit known))  (hit-of hit))
        hidden (- (len hits) (len seen)))
  (when hidden
    (.say ctx f"Skipped {(number-of hidden "hit")}: the rules forbid reading."))
  (told (cond
          seen  f"{(number-of (len seen) "hit")}, the best first."
          (.get options "semantic")  "No text is similar in meaning. To look for the words, use search."
          (in "grep-search" ctx.tool-names)
            "Nothing was found in memory and conversations; to search files, use grep-search."
          True  "Nothing was found.") :hits seen))

;; * Tools

(def-cognitive-tool block
  "Change your memory blocks (not files); append creates a missing block."
  :parameters [operation     {:type str
                              :choices ["append" "replace" "read" "undo" "archive" "load" "swap" "list"]}
               label         {:type str  :default None}
               content       {:type str  :default None}
               old-content   {:type str  :default None}
               new-content   {:type str  :default None}
               archive-label {:type str  :default None}
               load-label    {:type str  :default None}
               to            {:type str  :doc "Other label to archive or load to"  :default None
                              :role :content}]
  :effects    [:memory]
  :free-text  True
  :asks-first True
  :guard      (await (labels-ruled "block" operation ctx label archive-label load-label to))
  :examples   [(block :operation "append" :label "human" :content "Prefers morning meetings")]
  :body       (await (memory-call BLOCK operation ctx
                       {"label" label  "content" content  "old-content" old-content
                        "new-content" new-content  "archive-label" archive-label
                        "load-label" load-label  "to" to})))

(def-cognitive-tool recall
  "Keep notes in your archive (not files), and read them by label."
  :parameters [operation {:type str  :choices ["insert" "append" "read" "delete"]}
               label     {:type str}
               content   {:type str  :default None}]
  :effects    [:memory]
  :free-text  True
  :asks-first True
  :guard      (await (labels-ruled "recall" operation ctx label))
  :examples   [(recall :operation "insert" :label "notes_2024_01" :content "Discussed the timeline")]
  :body       (await (memory-call RECALL operation ctx {"label" label  "content" content})))

(def-cognitive-tool search
  "Search your memory and earlier conversations (not files)."
  :parameters [query  {:type str}
               domain {:type str  :choices ["archival_memory" "conversations" "all"]  :default "all"}
               limit  {:type int  :default 10  :min 1  :max 100}
               since  {:type str  :doc "Date or time"  :default None}
               until  {:type str  :default None}
               scope  {:type str  :choices ["agent" "shared" "all"]  :default "agent"}]
  :effects    [:reads]
  :free-text  True
  :examples   [(search :domain "archival_memory" :query "project deadline" :limit 10)]
  :body       (await (searched ctx query scope :domain domain :limit limit
                               :since (or since "") :until (or until ""))))

(def-cognitive-tool semantic-search
  "Search your memory and earlier conversations only by meaning, not by words."
  :parameters [query  {:type str}
               domain {:type str  :choices ["archival_memory" "conversations" "all"]  :default "all"}
               limit  {:type int  :default 10  :min 1  :max 100}
               since  {:type str  :doc "Date or time"  :default None}
               until  {:type str  :default None}
               scope  {:type str  :choices ["agent" "shared" "all"]  :default "agent"}]
  :effects    [:reads]
  :shown      False
  :free-text  True
  :examples   [(semantic-search :query "what the user likes to eat")]
  :body       (await (searched ctx query scope :domain domain :limit limit
                               :since (or since "") :until (or until "") :semantic True)))
