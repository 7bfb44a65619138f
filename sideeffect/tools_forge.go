package sideeffect

import (
	"strings"
)

var (
	issueURL   = pattern(`(?P<url>https://\w[\w.-]*/\w[\w.-]*/[\w.-]+/issues/\d+)(?:\s|$)`)
	pullURL    = pattern(`(?P<url>https://\w[\w.-]*/\w[\w.-]*/[\w.-]+/pull/\d+)(?:\s|$)`)
	commentURL = pattern(`https://(?P<host>\w[\w.-]*)/(?P<repo>\w[\w.-]*/\w[\w.-]*)/(?:issues|pull)/\d+#issuecomment-(?P<id>\d+)`)
	releaseURL = pattern(`https://(?P<repo>\w[\w.-]*/\w[\w.-]*/\w[\w.-]*)/releases/tag/(?P<tag>\w[\w.+-]*)(?:\s|$)`)
	gistURL    = pattern(`https://gist\.github\.com/(?:\w[\w-]*/)?(?P<id>[0-9a-f]{20,40})(?:\s|$)`)
	mergeURL   = pattern(`(?P<project>https://\w[\w.-]*/\w[\w./-]*)/-/merge_requests/(?P<number>\d+)(?:\s|$)`)
	ticketURL  = pattern(`(?P<project>https://\w[\w.-]*/\w[\w./-]*)/-/(?:issues|work_items)/(?P<number>\d+)(?:\s|$)`)

	numbered      = pattern(`^https://(\w[\w.-]*/\w[\w.-]*/\w[\w.-]*)/(?:issues|pull)/\d+$`)
	closedIssue   = pattern(`Closed issue \w[\w.-]*/\w[\w.-]*#(?P<number>\d+)`)
	reopenedIssue = pattern(`Reopened issue \w[\w.-]*/\w[\w.-]*#(?P<number>\d+)`)
	closedPull    = pattern(`Closed pull request \w[\w.-]*/\w[\w.-]*#(?P<number>\d+)`)
	reopenedPull  = pattern(`Reopened pull request \w[\w.-]*/\w[\w.-]*#(?P<number>\d+)`)
)

// forges are where code is kept with other people.
func forges() map[string]tool {
	return map[string]tool{
		"gh": {
			valued: "-R --repo --hostname",
			atomic: true,
			reads: `issue list, issue ls, issue view, issue status, pr list, pr ls, pr view, pr status, pr diff, pr checks, pr checkout, co,
				repo view, repo list, repo ls, repo clone, repo set-default, repo gitignore, repo license, release list, release ls,
				release view, release download, release verify, release verify-asset, run list, run ls, run view, run watch, run download,
				workflow list, workflow ls, workflow view, gist list, gist ls, gist view, gist clone, label list, label ls, search, status,
				browse, auth, config, alias, extension, extensions, ext, completion, version, cache list, cache ls, secret list, secret ls,
				variable list, variable ls, variable get, ssh-key list, gpg-key list, org list, project list, project ls, project view,
				project field-list, project item-list, ruleset, rs, attestation verify, attestation download, attestation trusted-root,
				at verify, codespace list, codespace view, codespace logs, cs list, preview, accessibility`,
			writes: []verb{
				{path: "issue create", find: issueURL, undo: closeIssue, none: "-w --web"},
				{path: "issue new", find: issueURL, undo: closeIssue, none: "-w --web"},
				{path: "issue close", find: closedIssue, make: turned("issue", "reopen")},
				{path: "issue reopen", find: reopenedIssue, make: turned("issue", "close")},
				{path: "issue comment", find: commentURL, undo: deleteComment, none: "-w --web --edit-last --delete-last"},
				{path: "issue delete", undo: never("a deleted issue can't be brought back")},
				{path: "pr create", find: pullURL, undo: closePull, none: "-w --web"},
				{path: "pr new", find: pullURL, undo: closePull, none: "-w --web"},
				{path: "pr close", find: closedPull, make: turned("pr", "reopen"), none: "-d --delete-branch"},
				{path: "pr reopen", find: reopenedPull, make: turned("pr", "close")},
				{path: "pr comment", find: commentURL, undo: deleteComment, none: "-w --web --edit-last --delete-last"},
				{path: "pr merge", undo: never("a merge is taken back by a commit that reverts it")},
				{path: "release create", find: releaseURL,
					undo: argv("gh", "release", "delete", "{{.tag}}", "--repo", "{{.repo}}", "--yes").gone("release not found")},
				{path: "release delete", undo: never("a deleted release can't be brought back")},
				{path: "gist create", find: gistURL, undo: deleteGist, none: "-w --web"},
				{path: "gist new", find: gistURL, undo: deleteGist, none: "-w --web"},
				{path: "gist delete", undo: never("a deleted gist can't be brought back")},
				{path: "repo create", undo: never("a repository is not deleted without a person")},
				{path: "repo fork", undo: never("a repository is not deleted without a person")},
				{path: "repo delete", undo: never("a deleted repository is brought back by its host, if at all")},
				{path: "label create", make: newLabel},
				{path: "secret set", undo: never("the value before can't be read")},
				{path: "secret delete", undo: never("the value before can't be read")},
			},
			plain: `issue edit, issue transfer, issue lock, issue unlock, issue pin, issue unpin, issue develop, pr edit, pr review, pr ready,
				pr lock, pr unlock, pr update-branch, pr revert, repo edit, repo rename, repo archive, repo unarchive, repo sync,
				repo deploy-key add, repo deploy-key delete, repo autolink create, repo autolink delete, release edit, release upload,
				release delete-asset, run rerun, run cancel, run delete, workflow run, workflow enable, workflow disable, gist edit,
				gist rename, label edit, label delete, label clone, variable set, variable delete, cache delete, ssh-key add, ssh-key delete,
				gpg-key add, gpg-key delete, project create, project edit, project delete, project close, project copy, project link,
				project unlink, project item-add, project item-create, project item-edit, project item-delete, project item-archive,
				codespace create, codespace delete, codespace edit, codespace stop, codespace rebuild, codespace ssh, codespace cp,
				cs create, cs delete, agent-task create`,
			rest:  Maybe,
			judge: judgeAPI,
		},
		"glab": {
			valued: "-R --repo -g --group",
			atomic: true,
			reads: `issue list, issue ls, issue view, issue show, issue board, mr list, mr ls, mr view, mr show, mr diff, mr checkout, mr issues,
				mr approvers, repo view, repo clone, repo search, repo contributors, repo list, release list, release view, release download,
				ci list, ci view, ci status, ci trace, ci get, ci lint, ci artifact, ci config, pipeline list, label list, label get,
				variable list, variable get, variable export, snippet list, auth, config, alias, completion, version, check-update, user,
				ssh-key list, ssh-key get, schedule list, milestone list, milestone get, token list, changelog, runner list, incident list,
				incident view`,
			writes: []verb{
				{path: "issue create", find: ticketURL, undo: argv("glab", "issue", "close", "{{.number}}", "-R", "{{.project}}"), none: "--web"},
				{path: "issue new", find: ticketURL, undo: argv("glab", "issue", "close", "{{.number}}", "-R", "{{.project}}"), none: "--web"},
				{path: "mr create", find: mergeURL, undo: argv("glab", "mr", "close", "{{.number}}", "-R", "{{.project}}"), none: "-w --web"},
				{path: "mr new", find: mergeURL, undo: argv("glab", "mr", "close", "{{.number}}", "-R", "{{.project}}"), none: "-w --web"},
				{path: "mr merge", undo: never("a merge is taken back by a commit that reverts it")},
				{path: "repo create", undo: never("a project is not deleted without a person")},
			},
			plain: `issue close, issue reopen, issue update, issue delete, issue note, issue subscribe, mr close, mr reopen, mr update,
				mr delete, mr note, mr approve, mr revoke, mr rebase, mr todo, repo delete, repo fork, repo archive, repo mirror,
				repo transfer, repo update, release create, release upload, release delete, ci run, ci retry, ci trigger, ci cancel,
				ci delete, label create, label delete, label edit, variable set, variable update, variable delete, snippet create,
				ssh-key add, ssh-key delete, schedule create, schedule run, schedule delete, token create, token revoke, token rotate`,
			rest:  Maybe,
			judge: judgeAPI,
		},
		"git": {
			valued: "-C -c --git-dir --work-tree --namespace --exec-path --config-env",
			writes: []verb{
				{path: "send-email", undo: never("a mail can't be called back")},
				{path: "imap-send", undo: never("a mail can't be called back")},
			},
			plain: "svn dcommit, svn commit, p4 submit",
			judge: judgeGit,
		},
		"hub":  {plain: `pull-request, issue create, issue update, release create, release edit, release delete, create, fork, delete, gist create`, judge: judgeGit},
		"tea":  {reads: "issues list, pulls list, login, logout, whoami, open", rest: Maybe},
		"jira": {reads: "issue list, issue view, sprint list, epic list, board list, project list, me, open, init, serverinfo", rest: Maybe},
		"sentry-cli": {reads: "info, login, releases list, releases info, releases propose-version, issues list, projects list, organizations list",
			rest: Maybe},
	}
}

var (
	closeIssue    = argv("gh", "issue", "close", "{{.url}}", "--reason", "not planned")
	closePull     = argv("gh", "pr", "close", "{{.url}}")
	deleteComment = argv("gh", "api", "--hostname", "{{.host}}", "-X", "DELETE", "repos/{{.repo}}/issues/comments/{{.id}}").gone("HTTP 404")
	deleteGist    = argv("gh", "gist", "delete", "{{.id}}", "--yes").gone("the gist is not found")
)

// turned is what was closed or reopened, turned back. The output proves that it was
// turned and does not name the host, so the command has to say where.
func turned(kind, back string) func(args) (Compensation, map[string]string) {
	return func(a args) (Compensation, map[string]string) {
		ops := a.operands("-R --repo --hostname -c --comment -r --reason --duplicate-of")
		repo, ok := a.option("-R", "--repo")
		if len(ops) == 3 {
			if m := numbered().FindStringSubmatch(ops[2].text); m != nil {
				repo, ok = m[1], true
			}
		}
		if !ok || strings.ContainsRune(repo, hole) {
			return Compensation{}, nil
		}
		return argv("gh", kind, back, "{{.number}}", "--repo", "{{.repo}}"), map[string]string{"repo": repo}
	}
}

// newLabel is undone only where it is known what was made: with --force the label
// may have been there.
func newLabel(a args) (Compensation, map[string]string) {
	ops := a.operands("-R --repo --hostname -c --color -d --description")
	repo, ok := a.option("-R", "--repo")
	if len(ops) != 3 || ops[2].unknown() || !ok || strings.ContainsRune(repo, hole) || a.has("-f", "--force") {
		return Compensation{}, nil
	}
	return argv("gh", "label", "delete", "{{.label}}", "--repo", "{{.repo}}", "--yes").gone("not found"),
		map[string]string{"label": ops[2].text, "repo": repo}
}

// judgeAPI reads gh api and glab api, which send a POST as soon as there are
// fields.
func judgeAPI(a args) (finding, decision) {
	const valued = "-R --repo -X --method -f --raw-field -F --field --input -H --header -q --jq -t --template --cache --hostname -p --preview --form"
	ops := a.operands(valued)
	if len(ops) == 0 || ops[0].text != "api" {
		return byVerbs()
	}
	rule := a.tool + " api"
	method, given := a.option("-X", "--method")
	for _, w := range a.words {
		if m, attached := strings.CutPrefix(w.text, "-X"); attached && m != "" {
			method, given = m, true
		}
	}
	if len(ops) > 1 && ops[1].text == "graphql" {
		return judgeGraphQL(a, rule)
	}
	fields := a.has("-f", "--raw-field", "-F", "--field", "--input", "--form")
	if !given && !fields {
		return nothing()
	}
	if !given {
		method = "POST"
	}
	return byMethod(rule, method)
}

func judgeGraphQL(a args, rule string) (finding, decision) {
	for _, w := range a.words {
		_, query, found := strings.Cut(w.text, "query=")
		query = strings.TrimSpace(query)
		switch {
		case found && (strings.HasPrefix(query, "query") || strings.HasPrefix(query, "{")) && !strings.Contains(query, "mutation"):
			return nothing()
		case found && strings.Contains(query, "mutation"):
			return write(rule + " graphql")
		}
	}
	return maybe(rule + " graphql")
}

// byMethod judges an HTTP request by its method.
func byMethod(rule, method string) (finding, decision) {
	method = strings.ToUpper(method)
	switch method {
	case "GET", "HEAD", "OPTIONS", "TRACE":
		return nothing()
	case "POST", "PUT", "PATCH", "DELETE":
		return write(rule + " " + method)
	}
	return maybe(rule)
}

// judgeGit: what stays in the repository is the business of others. A push is
// listed.
func judgeGit(a args) (finding, decision) {
	ops := a.operands("-C -c --git-dir --work-tree --namespace --exec-path --config-env -o --push-option --receive-pack --exec --repo")
	for i, prefix := range []string{"push", "lfs push", "subtree push", "annex sync"} {
		n := len(strings.Fields(prefix))
		if len(ops) < n || join(ops[:n]) != prefix {
			continue
		}
		if i == 0 && a.has("-n") {
			return nothing()
		}
		f := finding{class: Push, rule: a.tool + " " + prefix}
		for j, w := range ops[n:] {
			if j == 0 {
				f.remote = seen(w)
			} else {
				f.refs = append(f.refs, seen(w))
			}
		}
		if repo, ok := a.option("--repo"); ok && f.remote == "" {
			f.remote = repo
		}
		return f, isEffect
	}
	return byVerbs()
}

// seen is a word for people: what is not known is a question mark.
func seen(w word) string { return strings.ReplaceAll(w.text, string(hole), "?") }
