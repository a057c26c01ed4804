;;; quoth.el --- requests, flights, logs and Babel blocks of quoth  -*- lexical-binding: t; -*-
;; Package-Requires: ((emacs "28.1"))
;; Its job: M-x quoth-pending decides what waits, quoth-fly flies a plan, quoth-log shows a session as Org, and Org Babel
;; runs #+begin_src quoth blocks. It asks the command quoth for everything. It must not know tools or policy, and no text
;; of a model or a block ever meets a shell or Emacs Lisp's own reader.
;;; Code:
(require 'ob)
(require 'compile)
(require 'json)
(require 'tabulated-list)

(defgroup quoth nil "An agent whose every action is a form." :group 'tools)
(defcustom quoth-command '("quoth") "The command and the options before its own, a list of texts."
  :type '(repeat string))

;;; The command

(defun quoth--run (input &rest words)
  "Run quoth with WORDS and INPUT on stdin; return (CODE OUT ERR)."
  (let ((coding-system-for-read 'utf-8) (coding-system-for-write 'utf-8)
        (process-environment (append '("TERM=dumb" "NO_COLOR=1") process-environment))
        (errors (make-temp-file "quoth")))
    (unwind-protect
        (with-temp-buffer
          (insert (or input ""))
          (let ((code (apply #'call-process-region nil nil (car quoth-command) t (list t errors) nil
                             (append (cdr quoth-command) '("--no-input") words))))
            (list code (buffer-string) (with-temp-buffer (insert-file-contents errors) (buffer-string)))))
      (delete-file errors))))

(defun quoth--text (&rest words)
  "What quoth prints for WORDS; an error says what it complains of."
  (pcase-let ((`(,code ,out ,err) (apply #'quoth--run nil words)))
    (unless (eql code 0) (user-error "%s" (string-trim (if (string-empty-p err) out err))))
    out))

(defun quoth--parsed (text)
  "The first JSON value in TEXT; objects are hash tables."
  (json-parse-string text :array-type 'list :null-object nil :false-object :false))

(defun quoth--data (&rest words)
  "What quoth prints for WORDS as JSON."
  (quoth--parsed (apply #'quoth--text "--json" words)))

(defun quoth--line (text)
  "TEXT on one line, without what reorders or hides it."
  (replace-regexp-in-string "[[:cntrl:]\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]+ *" " "
                            (format "%s" (or text ""))))

(defun quoth--filled (text mode folder)
  "Fill the buffer with TEXT, to be read in MODE; FOLDER is the workspace."
  (let ((inhibit-read-only t) (enable-local-variables nil))
    (erase-buffer)
    (insert text)
    (funcall mode)
    (goto-char (point-min)))
  (setq buffer-read-only t default-directory folder))

;;; What waits for a person

(define-derived-mode quoth-request-mode special-mode "Request"
  "A request in full; what it would change stands behind a margin, in the colours of a diff.
An argument that comes from a text or from the model alone has the colour of a warning."
  (require 'diff-mode)
  (setq font-lock-defaults
        '((("^│ \\+.*" . 'diff-added) ("^│ -.*" . 'diff-removed) ("^│ @@.*" . 'diff-hunk-header)
           ("^! .*" . 'warning))
          t)))

(defvar quoth-pending-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'quoth-pending-show)
    (define-key map "a" #'quoth-pending-approve)
    (define-key map "d" #'quoth-pending-deny)
    (define-key map "r" #'quoth-pending-answer)
    map)
  "Keys of `quoth-pending-mode'.")

(define-derived-mode quoth-pending-mode tabulated-list-mode "Pending"
  "The calls that wait for a person.
\\<quoth-pending-mode-map>\\[quoth-pending-show] shows one with what it would change, \\[quoth-pending-approve] \
approves it, \\[quoth-pending-deny] denies it with a reason, \\[quoth-pending-answer] answers a question."
  (setq tabulated-list-format [("ID" 6 t) ("Asked" 17 t) ("By" 10 t) ("Session" 12 t) ("Call" 0 nil)]
        tabulated-list-entries #'quoth--pending)
  (tabulated-list-init-header))

(defun quoth--pending ()
  "The rows of the list."
  (mapcar (lambda (one)
            (let ((of (lambda (key) (quoth--line (gethash key one)))))
              (list (gethash "id" one)
                    (vector (funcall of "id")
                            (substring (replace-regexp-in-string "T" " " (funcall of "asked")) 0 16)
                            (funcall of "user") (funcall of "session")
                            (funcall of (if (equal (gethash "kind" one) "question") "question" "form"))))))
          (quoth--data "pending")))

;;;###autoload
(defun quoth-pending ()
  "List what waits for a decision in this folder."
  (interactive)
  (let ((here default-directory))
    (pop-to-buffer "*quoth pending*")
    (setq default-directory here)
    (quoth-pending-mode)
    (tabulated-list-print)))

(defun quoth--at-point ()
  "The request at point."
  (or (tabulated-list-get-id) (user-error "There is no request on this line")))

(defun quoth-pending-show (id)
  "Show request ID in full, with the diff of what it would change."
  (interactive (list (quoth--at-point)))
  (let ((text (quoth--text "pending" id)) (here default-directory))
    (with-current-buffer (get-buffer-create "*quoth request*")
      (quoth--filled text #'quoth-request-mode here)
      (display-buffer (current-buffer)))))

(defun quoth-pending-approve (id)
  "Show request ID, and approve it once if the answer is yes."
  (interactive (list (quoth--at-point)))
  (quoth-pending-show id)
  (when (y-or-n-p (format "Approve request %s once? " id))
    (quoth--decided "approve" id)))

(defun quoth-pending-deny (id why)
  "Deny request ID; WHY is what its caller is told."
  (interactive (let ((id (quoth--at-point))) (list id (read-string (format "Why is %s denied? " id)))))
  (quoth--decided "deny" id (concat "--why=" why)))

(defun quoth-pending-answer (id)
  "Show request ID, a question, and answer it in words, or with one of its choices."
  (interactive (list (quoth--at-point)))
  (let* ((asked (quoth--data "pending" id)) (choices (gethash "choices" asked)))
    (quoth-pending-show id)
    (quoth--decided "answer" id "--" (if choices
                                         (completing-read "Your answer: " choices nil (eq t (gethash "only" asked)))
                                       (read-string "Your answer: ")))))

(defun quoth--decided (&rest words)
  "Have quoth carry out the decision in WORDS, say what came of it, and list the rest."
  (message "%s" (string-trim (apply #'quoth--text words)))
  (when (derived-mode-p 'quoth-pending-mode)
    (let ((line (line-number-at-pos)))  ; the next d must not meet another request by chance
      (tabulated-list-print)
      (forward-line (1- line)))))

;;; Flights

(defvar quoth-fly-outcomes
  '((quoth-failed "^\\([^ \n:]+\\):\\([0-9]+\\): \\(?:FAILED\\|DENIED\\|CANCELLED\\)" 1 2 nil 2)
    (quoth-waits "^\\([^ \n:]+\\):\\([0-9]+\\): \\(?:PLAN\\|WAITING\\)" 1 2 nil 1)
    (quoth-done "^\\([^ \n:]+\\):\\([0-9]+\\): \\(?:DONE\\|APPROVED\\|RUNNING\\)" 1 2 nil 0)
    (quoth-mistake "^\\(?:quoth: \\)?\\([^ \n:]+\\.\\(?:org\\|md\\)\\):\\([0-9]+\\)\\(?::\\([0-9]+\\)\\)?: " 1 2 3 2))
  "How the lines of a flight name places: failed steps are errors, those that wait warnings.")

(define-compilation-mode quoth-fly-mode "Flight"
  "A flight as it happens; \\[next-error] goes to the next step that failed or waits."
  (setq-local compilation-error-regexp-alist-alist quoth-fly-outcomes
              compilation-error-regexp-alist (mapcar #'car quoth-fly-outcomes)))

;;;###autoload
(defun quoth-fly (plan)
  "Fly PLAN, an Org file, in the project of the current folder; its buffer is read again at the end."
  (interactive (list (or (and (derived-mode-p 'org-mode) buffer-file-name)
                         (read-file-name "Plan: " nil nil t nil))))
  (let* ((plan (expand-file-name plan)) (buffer (find-buffer-visiting plan)))
    (when buffer (with-current-buffer buffer (save-buffer)))
    (let ((words (append quoth-command (list "--no-input" "fly" (file-relative-name plan)))))
      (with-current-buffer (compilation-start (mapconcat #'shell-quote-argument words " ") #'quoth-fly-mode)
        (add-hook 'compilation-finish-functions
                  (lambda (&rest _)
                    (when (buffer-live-p buffer) (with-current-buffer buffer (revert-buffer t t t))))
                  nil t)
        (current-buffer)))))

;;; Logs

(defun quoth--sessions ()
  "The ids of the sessions, the latest first."
  (nreverse (mapcar (lambda (one) (gethash "id" one)) (quoth--data "sessions"))))

(defun quoth--latest (command)
  "The session that COMMAND takes where none is named."
  (let ((one (seq-find (lambda (one) (member command (gethash "latest_for" one))) (quoth--data "sessions"))))
    (if one (gethash "id" one) (user-error "None of your sessions here is one for quoth %s" command))))

;;;###autoload
(defun quoth-log (session)
  "Show SESSION as an Org document; empty means your latest one, which the name of the buffer says."
  (interactive (list (completing-read "Session (your latest): " (quoth--sessions))))
  (let* ((session (if (string-empty-p session) (quoth--latest "log") session))
         (text (quoth--text "log" "--org" session))
         (here default-directory))
    (pop-to-buffer (format "*quoth log %s*" session))
    (quoth--filled text #'org-mode here)))

;;; Org Babel

(defvar org-babel-default-header-args:quoth '((:results . "value")))
(defconst org-babel-header-args:quoth '((tools . :any) (workspace . :any))
  "Beside those of every language: a file of tools, or several, and the folder the file tools may touch.")
(add-to-list 'org-src-lang-modes '("quoth" . lisp))

(defun ob-quoth--literal (value)
  "VALUE, of Org, as a literal of Hy."
  (cond ((null value) "None")
        ((eq value t) "True")
        ((numberp value) (number-to-string value))
        ((stringp value) (json-encode-string value))
        ((eq value 'hline) "None")
        ((symbolp value) (json-encode-string (symbol-name value)))
        ((proper-list-p value) (concat "[" (mapconcat #'ob-quoth--literal value " ") "]"))
        ((vectorp value) (ob-quoth--literal (append value nil)))
        (t (user-error "This value cannot be given to quoth: %S" value))))

(defun org-babel-expand-body:quoth (body params)
  "BODY inside of a let that binds the :var among PARAMS."
  (let ((vars (org-babel--get-vars params)))
    (if (null vars) body
      (format "(let [%s]\n%s\n)"
              (mapconcat (lambda (var) (format "%s %s" (car var) (ob-quoth--literal (cdr var)))) vars "  ")
              body))))

(defun ob-quoth--options (params)
  "The options of the command that PARAMS ask for: :session, :tools and :workspace."
  (let ((session (cdr (assq :session params))) (tools (cdr (assq :tools params)))
        (workspace (cdr (assq :workspace params))))
    (append (unless (member session '(nil "none")) (list "--session" (format "%s" session)))
            (mapcan (lambda (file) (list "--tools" (expand-file-name file)))
                    (if (listp tools) (copy-sequence tools) (split-string (format "%s" tools))))
            (when workspace (list "--workspace" (expand-file-name (format "%s" workspace)))))))

(defun org-babel-execute:quoth (body params)
  "Run BODY, a program, with PARAMS; an error is shown, and nothing is written."
  (pcase-let* ((words (append (ob-quoth--options params) '("--json" "eval" "-")))
               (`(,_ ,out ,err) (apply #'quoth--run (org-babel-expand-body:quoth body params) words))
               (answer (condition-case nil (quoth--parsed out)
                         (error (user-error "quoth gave no answer: %s" (string-trim (concat out err))))))
               (value (gethash "value" answer)))
    (unless (equal (gethash "status" answer) "ok")
      (user-error "quoth: %s: %s" (gethash "status" answer) (gethash "message" answer)))
    (cond ((hash-table-p value) (json-encode value)) ((eq value :false) "False") ((eq value t) "True") (t value))))

(provide 'quoth)
;;; quoth.el ends here
