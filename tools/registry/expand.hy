"The expansions of the macros in tools/macros.hy: functions from models to models, called while compiling.
They check the spelling of a definition; define.py checks its values."

(import
  quoth.tools.errors [DefinitionError did-you-mean]
  quoth.tools.registry.define [OPTIONS]
  quoth.tools.lisp.forms [kebab]
  quoth.tools.lisp.printer [show]
  quoth.tools.registry.param-types [STOCK-TYPES]
  quoth.tools.registry.returns [HOW]
  quoth.tools.registry.parameters [NAME RESERVED SPEC-KEYS checked-role name-hint]
  quoth.tools.registry.parameters [KEYS :as TAG-KEYS]
  quoth.tools.text [short])

(setv TYPES {"form"  'hy.I.quoth/tools/lisp/printer.Code
             "any"   'hy.I.typing.Any
             "path"  'hy.I.quoth/tools/registry/param_types.WorkspacePath})
  ; The parameter types that are not Python types.
(setv STOCK (lfor name STOCK-TYPES (hy.models.Symbol name)))

;; * Reading a definition

(setv TOOL-KEYS #("parameters" "guard" "changes" "body" #* OPTIONS))

(defn option-table [compiler items known owner [kinds hy.models.Keyword]]
  "The options of a definition as a dictionary of models; an unknown key is an error at that key."
  (setv found {}  index 0)
  (while (< index (len items))
    (setv key (get items index))
    (when (not (isinstance key kinds))
      (fail compiler key f"{owner}: an option such as :{(get known 0)} is expected here, not {(show key)}."))
    (setv name (str (getattr key "name" key)))
    (when (not-in name known)
      (fail compiler key (+ f"{owner}: there is no option :{name}; the options are "
                            (.join " " (gfor name known (+ ":" name))) "."
                            (did-you-mean name known :mark ":"))))
    (when (in name found)
      (fail compiler key f"{owner}: :{name} is given twice."))
    (when (>= (+ index 1) (len items))
      (fail compiler key f"{owner}: :{name} has no value."))
    (setv (get found name) (get items (+ index 1)))
    (+= index 2))
  found)

(defn fail [compiler model message]
  "Stop compiling with a caret at MODEL, or at the whole form if it is None."
  (raise (compiler._syntax-error (if (is model None) compiler.this model) message)))

(defn must-describe [compiler name description]
  (when (not (isinstance description hy.models.String))
    (fail compiler description f"{name} needs a description in quotes before its options.")))

;; * The definition of a tool

(defn expand-tool [compiler name description items]
  "The expansion of def-cognitive-tool: one call of quoth.tools.registry.define.define-tool."
  (when (not (isinstance name hy.models.Symbol))
    (fail compiler name
          (if (is name None) "A tool needs a name." f"A tool's name is a symbol, not {(show name)}.")))
  (when (not (NAME.match (kebab (str name))))
    (fail compiler name f"{name}: a tool's name is lower-case letters, digits and hyphens."))
  (setv name (.replace (hy.models.Symbol (kebab (str name))) name))
  (must-describe compiler name description)
  (setv options (option-table compiler items TOOL-KEYS (str name)))
  (when (not-in "body" options)
    (fail compiler name f"{name} has no :body."))
  (for [key ["guard" "body"]]
    (must-be-form compiler name key (.get options key)))
  (setv params (parameter-table compiler name (.get options "parameters" '[])))
  (setv names (lfor param params (get param 0)))
  `(hy.I.quoth/tools/registry/define.define-tool ~(str name) ~description
     :parameters {~@(gfor  param params
                           item [(str (get param 0)) (parameter-spec compiler name #* param)]
                           item)}
     :guard ~(if (in "guard" options) (function (get options "guard") (+ '[call ctx deny ask] names)) 'None)
     :body ~(function (get options "body") (+ '[call ctx] names))
     ~@(if (in "changes" options)
           [:changes (reading-function compiler name (get options "changes") (+ '[call ctx] names))]
           [])
     :source ~(source-text compiler)
     :form ~(show compiler.this)
     :module __name__
     ~@(gfor  key OPTIONS  :if (in key options)
              item [(hy.models.Keyword key) (option-value compiler (str name) key (get options key))]
              item)))

(setv WHOLE ['True 'False 'None])

(defn option-value [compiler tool key value]
  "Examples are data, :returns is a type like a parameter's; every other option is evaluated at the tool's
  definition. The keys of a tag are checked before."
  (cond
    (= key "examples")
      `(quote ~value)
    (= key "returns")
      (bound-type value)
    (and (= key "free-text") (isinstance value hy.models.List))
      (field-names compiler tool value)
    (and (= key "free-text") (not-in value WHOLE))
      (fail compiler value f"{tool}: {HOW}; not {(show value)}.")
    (and (= key "tag") (isinstance value hy.models.Dict))
      (do
        (setv pairs (option-table compiler value TAG-KEYS f"{tool}, :tag"
                                  #(hy.models.Keyword hy.models.String)))
        `{~@(gfor  #(key value) (.items pairs)  item [key value]  item)})
    True
      value))

(defn field-names [compiler tool names]
  "[body subject] as a list of texts."
  (lfor  name names
         (if (isinstance name #(hy.models.Symbol hy.models.Keyword hy.models.String))
             (str (getattr name "name" name))
             (fail compiler name f"{tool}: the name of a field is expected here, not {(show name)}."))))

(defn parameter-table [compiler tool params]
  "[name {spec} …] as a list of #(name spec)."
  (when (not (isinstance params hy.models.List))
    (fail compiler params f"{tool}: :parameters is a list, [name {{:type str :doc \"…\"}} …]."))
  (setv table []  index 0)
  (while (< index (len params))
    (setv name (get params index))
    (when (not (and (isinstance name hy.models.Symbol) (NAME.match (str name))))
      (fail compiler name (+ f"{tool}: a parameter's name is expected here, not {(show name)}."
                             (name-hint name))))
    (when (in (str name) RESERVED)
      (fail compiler name f"{tool}: {name} is already bound in guard and body; choose another name."))
    (when (in name (gfor row table (get row 0)))
      (fail compiler name f"{tool}: the parameter {name} is given twice."))
    (setv spec (if (< (+ index 1) (len params)) (get params (+ index 1)) None))
    (when (not (isinstance spec hy.models.Dict))
      (fail compiler (if (is spec None) name spec)
            f"{tool}: {name} needs a spec such as {{:type str :doc \"what it is\"}}."))
    (.append table #(name spec))
    (+= index 2))
  table)

(defn parameter-spec [compiler tool name spec]
  "{:type str …} as a dictionary with string keys; the type `form` is a Lisp program as text, `path` a file or
  folder of the workspace."
  (setv pairs (option-table compiler spec SPEC-KEYS f"{tool}, parameter {name}"))
  (when (in "type" pairs)
    (setv (get pairs "type") (bound-type (get pairs "type"))))
  (setv role (.get pairs "role"))
  (when (and (isinstance role hy.models.Symbol) (!= role 'None))  ; written like a field of :free-text
    (setv role (.replace (hy.models.Keyword (str role)) role)  (get pairs "role") role))
  (when (isinstance role hy.models.Keyword)
    (try
      (checked-role f"{tool}, parameter {name}" role)
      (except [error DefinitionError]
        (fail compiler role (str error)))))
  `{~@(gfor  #(key value) (.items pairs)  item [key value]  item)})

(defn bound-type [form]
  "A type as it is written, with the names of TYPES bound, and the names of STOCK unless the file has a type
  of that name: path, (get list date), (| path None)."
  (cond
    (in form STOCK)
      `(hy.I.quoth/tools/registry/param_types.stock-type ~(str form) (globals))
    (isinstance form hy.models.Symbol)
      (.get TYPES (str form) form)
    (and (isinstance form hy.models.Expression) form)
      (hy.models.Expression [(get form 0) #* (map bound-type (cut form 1 None))])
    (isinstance form #(hy.models.List hy.models.Tuple))
      ((type form) (map bound-type form))
    True
      form))

(defn function [form names]
  "A function of NAMES with the body FORM, asynchronous if it awaits."
  (if (awaits? form)
      `(fn :async [~@names] ~form)
      `(fn [~@names] ~form)))

(defn reading-function [compiler tool form names]
  "The function of :changes; it must not await, because a person waits for the question."
  (when (awaits? form)
    (fail compiler form f"{tool}: :changes may only read files, and cannot await."))
  (function form names))

(defn awaits? [form]
  "Whether FORM itself awaits (or has an :async clause), outside functions that it defines."
  (and (isinstance form hy.models.Sequence)
       (bool form)
       (not-in (get form 0) ['fn 'defn 'quote])
       (or (= (get form 0) 'await)
           (in :async form)
           (any (gfor item form (awaits? item))))))

(defn source-text [compiler]
  "The text of the definition, including comments; printed from its models if there is no file."
  (setv form compiler.this  source (getattr compiler "source" None))
  (if (and source (getattr form "end_line" None))
      (do
        (setv lines (cut (.split source "\n") (- form.start-line 1) form.end-line))
        (setv (get lines -1) (cut (get lines -1) 0 form.end-column))
        (setv (get lines 0) (cut (get lines 0) (- form.start-column 1) None))
        (.join "\n" lines))
      (show form)))

(defn must-be-form [compiler tool key form]
  "Require that a guard or body is a form: a function, as in Common Lisp, would be its return value."
  (when (and (isinstance form hy.models.Expression) form (in (get form 0) ['lambda 'fn]))
    (setv written (without-plist (cut form 2 None)))
    (setv inner (if (= (len written) 1) (get written 0) `(do ~@written)))
    (fail compiler form (+ f"{tool}: :{key} is a form, in which the parameters are bound by name, and not a "
                           f"function; write :{key} {(short (show inner) 300)}"))))

(defn without-plist [form]
  "FORM with each (getf args :parameter) replaced by the parameter itself."
  (cond
    (and (isinstance form hy.models.Expression) (= (len form) 3) (= (get form 0) 'getf)
         (isinstance (get form 2) hy.models.Keyword))
      (hy.models.Symbol (. (get form 2) name))
    (isinstance form hy.models.Sequence)
      ((type form) (map without-plist form))
    True
      form))

;; * Kinds of tools built on it

(defn expand-shell-tool [compiler name description items]
  "A tool whose body runs one program, without a shell; parameters in :argv are filled in."
  (must-describe compiler name description)
  (setv options (option-table compiler items
                              #("argv" "cwd" "guard" "changes" "parameters" #* OPTIONS)
                              (str name)))
  (when (not (isinstance (.get options "argv") hy.models.List))
    (fail compiler name f"{name} needs :argv, a list of texts and parameters; it is never given to a shell."))
  (setv argv (.pop options "argv")  cwd (.pop options "cwd" "."))
  (.setdefault options "effects" '[:runs])
  (.setdefault options "free-text" 'True)
  (tool-with name description options `(hy.I.quoth/tools/builtin/process.run-argv ~argv :cwd ~cwd)))

(defn expand-http-tool [compiler name description items]
  "A tool whose body sends one HTTP request; parameters in :query or :json are filled in."
  (must-describe compiler name description)
  (setv options (option-table compiler items
                              #("url" "method" "query" "json" "headers" "guard" "changes" "parameters"
                                #* OPTIONS)
                              (str name)))
  (when (not-in "url" options)
    (fail compiler name f"{name} needs :url."))
  (setv request (lfor  key ["method" "query" "json" "headers"]
                       :if (in key options)
                       item [(hy.models.Keyword key) (.pop options key)]
                       item)
        url (.pop options "url"))
  (.setdefault options "effects" '[:net])
  (.setdefault options "free-text" 'True)
  (tool-with name description options `(hy.I.quoth/tools/builtin/process.http-request ~url ~@request)))

(defn tool-with [name description options body]
  "A tool whose body awaits the call BODY, with its timeout and its context."
  `(def-cognitive-tool ~name ~description
     ~@(gfor  #(key value) (.items options)  item [(hy.models.Keyword key) value]  item)
     :body (await (~@body :timeout ~(.get options "timeout" 30) :ctx ctx))))
