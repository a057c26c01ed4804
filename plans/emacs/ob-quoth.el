;;; ob-quoth.el --- Org Babel runs #+begin_src quoth blocks  -*- lexical-binding: t; -*-
;; Its job: hand the block to the command quoth, its :var as let bindings, and give Org back the value.
;; It must not know tools or policy, and no text of a block ever meets a shell or Emacs Lisp's own reader.
;;; Code:
(require 'ob)
(require 'json)

(defvar ob-quoth-command '("quoth" "--no-input") "The command and the options before its own, a list of texts.")
(defvar org-babel-default-header-args:quoth '((:results . "value")))
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

(defun org-babel-execute:quoth (body params)
  "Run BODY, a program, with PARAMS; an error is shown, and nothing is written."
  (with-temp-buffer
    (insert (org-babel-expand-body:quoth body params))
    (let* ((command (append ob-quoth-command '("--json" "eval" "-")))
           (coding-system-for-read 'utf-8) (coding-system-for-write 'utf-8))
      (apply #'call-process-region (point-min) (point-max) (car command) t '(t nil) nil (cdr command)))
    (goto-char (point-min))
    (let* ((answer (condition-case nil (json-parse-buffer :array-type 'list :null-object nil :false-object :false)
                     (error (user-error "quoth gave no answer: %s" (buffer-string)))))
           (value (gethash "value" answer)))
      (unless (equal (gethash "status" answer) "ok")
        (user-error "quoth: %s: %s" (gethash "status" answer) (gethash "message" answer)))
      (cond ((hash-table-p value) (json-encode value)) ((eq value :false) "False") ((eq value t) "True") (t value)))))

(provide 'ob-quoth)
;;; ob-quoth.el ends here
