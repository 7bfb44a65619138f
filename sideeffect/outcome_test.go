package sideeffect

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// programs are handlers whose PATH holds executables of these names.
func programs(t testing.TB, names ...string) Handlers {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o755))
	}
	return Handlers{Dir: dir, Env: []string{"PATH=" + dir}}
}

// What a tool printed, as it prints it, and how the effect is undone after that.
// The wanted lines are the status, and the command or why there is none.
func TestUndo(t *testing.T) {
	h := programs(t, "gh", "glab", "kubectl", "helm", "aws", "cargo")
	for _, test := range []struct {
		name, command string
		exit          int
		output        string
		want          []string
	}{
		{"gh issue create", `gh issue create --title x --body y`, 0,
			"\nCreating issue in owner/name\n\nhttps://github.com/owner/name/issues/12\n",
			[]string{"succeeded: gh issue close https://github.com/owner/name/issues/12 --reason 'not planned'"}},
		{"gh issue create, enterprise", `gh issue create --title x`, 0, "https://git.example.com/owner/na.me/issues/3\n",
			[]string{"succeeded: gh issue close https://git.example.com/owner/na.me/issues/3 --reason 'not planned'"}},
		{"gh issue create that printed nothing", `gh issue create --title x`, 0, "", []string{"succeeded: missing-value url"}},
		{"gh issue create in a browser", `cat notes && gh issue create --web`, 0, "https://github.com/o/n/issues/3\n",
			[]string{"succeeded: no-compensation "}},
		{"gh issue create that failed", `gh issue create --title x`, 1, "HTTP 403: Resource not accessible\n", []string{"failed: "}},
		{"gh issue create whose answer was lost", `gh issue create --title x`, 1, "Post \"https://api.github.com/graphql\": context deadline exceeded\n",
			[]string{"unknown: missing-value url"}},
		{"gh pr create", `git push -u origin topic && gh pr create --fill`, 0,
			"remote: Create a pull request for 'topic' on GitHub by visiting:\nremote:      https://github.com/o/n/pull/new/topic\n" +
				"Creating pull request for topic into main in o/n\n\nhttps://github.com/o/n/pull/7\n",
			[]string{"succeeded: listed", "succeeded: gh pr close https://github.com/o/n/pull/7"}},
		{"gh pr create where one was there", `gh pr create --fill`, 1,
			"a pull request for branch \"topic\" into branch \"main\" already exists:\nhttps://github.com/o/n/pull/7\n", []string{"failed: "}},
		{"the same, hidden", `gh pr create --fill || true`, 0,
			"a pull request for branch \"topic\" into branch \"main\" already exists:\nhttps://github.com/o/n/pull/7\n", []string{"unknown: missing-value url"}},
		{"the same, behind a pipe", `gh pr create --fill 2>&1 | tail -1`, 0, "https://github.com/o/n/pull/7\n", []string{"unknown: missing-value url"}},
		{"a pipe that fails with its parts", `set -o pipefail; gh pr create --fill 2>&1 | tail -1`, 0, "https://github.com/o/n/pull/7\n",
			[]string{"succeeded: gh pr close https://github.com/o/n/pull/7"}},
		{"a pipe that changes what it passes", `set -o pipefail; gh pr create --fill | sed s/7/8/`, 0, "https://github.com/o/n/pull/8\n",
			[]string{"succeeded: missing-value url"}},
		{"two issues", `gh issue create -t a && gh issue create -t b`, 0, "https://github.com/o/n/issues/1\nhttps://github.com/o/n/issues/2\n",
			[]string{"succeeded: gh issue close https://github.com/o/n/issues/1 --reason 'not planned'", "succeeded: gh issue close https://github.com/o/n/issues/2 --reason 'not planned'"}},
		{"two issues, one line", `gh issue create -t a && gh issue create -t b`, 0, "https://github.com/o/n/issues/2\n",
			[]string{"succeeded: missing-value url", "succeeded: missing-value url"}},
		{"an issue among others", `gh issue view 1 && gh issue create -t b`, 0, "https://github.com/o/n/issues/1\nhttps://github.com/o/n/issues/2\n",
			[]string{"succeeded: missing-value url"}},
		{"printed twice", `gh issue create -t b`, 0, "https://github.com/o/n/issues/2\nhttps://github.com/o/n/issues/2\n",
			[]string{"succeeded: gh issue close https://github.com/o/n/issues/2 --reason 'not planned'"}},
		{"not printed, but another one", `cat notes; gh issue create -t b > log`, 0, "https://github.com/o/n/issues/1\n", []string{"succeeded: missing-value url"}},
		{"not printed at all", `cat notes; gh issue create -t b &> log`, 0, "https://github.com/o/n/issues/1\n", []string{"succeeded: missing-value url"}},
		{"to standard error", `gh issue create -t b >&2`, 0, "https://github.com/o/n/issues/1\n",
			[]string{"succeeded: gh issue close https://github.com/o/n/issues/1 --reason 'not planned'"}},
		{"only the last of a loop is printed", `for t in a b; do u=$(gh issue create -t $t); done; echo $u`, 0, "https://github.com/o/n/issues/2\n",
			[]string{"unknown: missing-value url"}},
		{"in the middle", `gh issue create -t b; true`, 0, "https://github.com/o/n/issues/1\n", []string{"unknown: missing-value url"}},
		{"in the middle, strict", `set -e; gh issue create -t b; true`, 0, "https://github.com/o/n/issues/1\n",
			[]string{"succeeded: gh issue close https://github.com/o/n/issues/1 --reason 'not planned'"}},
		{"strict, but in a list", `set -e; gh issue create -t b && make; true`, 0, "https://github.com/o/n/issues/1\n", []string{"unknown: missing-value url"}},
		{"strict no more", `set -e; set +e; gh issue create -t b; true`, 0, "https://github.com/o/n/issues/1\n", []string{"unknown: missing-value url"}},
		{"before a failure", `gh issue create -t b && make`, 2, "https://github.com/o/n/issues/1\nmake: *** No targets.\n", []string{"unknown: missing-value url"}},
		{"before a failure that does not matter", `gh issue create -t b; false`, 1, "https://github.com/o/n/issues/1\n", []string{"unknown: missing-value url"}},
		{"any number of times", `xargs -n1 gh issue create -t < titles`, 0, "https://github.com/o/n/issues/1\n", []string{"succeeded: missing-value url"}},
		{"any number of times, and failing", `xargs -n1 gh issue create -t < titles`, 1, "https://github.com/o/n/issues/1\n", []string{"unknown: missing-value url"}},
		{"strict outside", `set -e; bash -c 'gh issue create -t b; true'`, 0, "https://github.com/o/n/issues/1\n", []string{"unknown: missing-value url"}},
		{"strict outside of a group", `set -e; (gh issue create -t b; true)`, 0, "https://github.com/o/n/issues/1\n",
			[]string{"succeeded: gh issue close https://github.com/o/n/issues/1 --reason 'not planned'"}},
		{"strict, but not left of a list", `set -e; (gh issue create -t b; true) && make`, 0, "https://github.com/o/n/issues/1\n", []string{"unknown: missing-value url"}},
		{"strict inside of a group", `(set -e; true); gh issue create -t b; true`, 0, "https://github.com/o/n/issues/1\n", []string{"unknown: missing-value url"}},
		{"in a shell", `bash -c 'cd x && gh issue create -t b'`, 0, "https://github.com/o/n/issues/1\n",
			[]string{"succeeded: gh issue close https://github.com/o/n/issues/1 --reason 'not planned'"}},
		{"not begun", `false && gh issue create -t b`, 1, "", []string{"failed: "}},
		{"no such program", `gh issue create -t b`, 127, "bash: gh: command not found\n", []string{"failed: "}},
		{"killed", `timeout 5 gh issue create -t b`, 124, "", []string{"unknown: missing-value url"}},
		{"in the background", `gh issue create -t b &`, 0, "", []string{"unknown: missing-value url"}},
		{"negated", `! gh issue create -t b`, 0, "", []string{"unknown: missing-value url"}},

		{"gh issue close", `gh issue close 12 -R owner/name`, 0, "✓ Closed issue owner/name#12 (It breaks)\n",
			[]string{"succeeded: gh issue reopen 12 --repo owner/name"}},
		{"gh issue close by its address", `gh issue close https://git.example.com/owner/name/issues/12`, 0, "✓ Closed issue owner/name#12 (It breaks)\n",
			[]string{"succeeded: gh issue reopen 12 --repo git.example.com/owner/name"}},
		{"gh issue close on a host that is not named", `gh issue close 12`, 0, "✓ Closed issue owner/name#12 (It breaks)\n",
			[]string{"succeeded: no-compensation "}},
		{"gh issue close of a closed one", `gh issue close 12 -R owner/name`, 0, "! Issue owner/name#12 (It breaks) is already closed\n",
			[]string{"succeeded: missing-value number"}},
		{"gh issue reopen", `gh issue reopen 12 -R owner/name`, 0, "✓ Reopened issue owner/name#12 (It breaks)\n",
			[]string{"succeeded: gh issue close 12 --repo owner/name"}},
		{"gh pr reopen", `gh pr reopen 7 -R owner/name`, 0, "✓ Reopened pull request owner/name#7 (Topic)\n",
			[]string{"succeeded: gh pr close 7 --repo owner/name"}},
		{"gh pr close", `gh pr close 7 -R owner/name`, 0, "✓ Closed pull request owner/name#7 (Topic)\n", []string{"succeeded: gh pr reopen 7 --repo owner/name"}},
		{"gh pr close with its branch", `gh pr close 7 -R owner/name --delete-branch`, 0, "✓ Closed pull request owner/name#7 (Topic)\n", []string{"succeeded: no-compensation "}},
		{"gh issue comment", `gh issue comment 12 -b x`, 0, "https://github.com/owner/name/issues/12#issuecomment-345\n",
			[]string{"succeeded: gh api --hostname github.com -X DELETE repos/owner/name/issues/comments/345"}},
		{"gh pr comment", `gh pr comment 7 -b x`, 0, "https://github.com/owner/name/pull/7#issuecomment-345\n",
			[]string{"succeeded: gh api --hostname github.com -X DELETE repos/owner/name/issues/comments/345"}},
		{"gh issue comment that edits", `gh issue comment 12 --edit-last -b x`, 0, "https://github.com/owner/name/issues/12#issuecomment-345\n",
			[]string{"succeeded: no-compensation "}},
		{"gh release create", `gh release create v1.2.0 a.tgz --notes x`, 0, "https://github.com/owner/name/releases/tag/v1.2.0\n",
			[]string{"succeeded: gh release delete v1.2.0 --repo github.com/owner/name --yes"}},
		{"gh gist create", `gh gist create a.md`, 0, "- Creating gist a.md\n✓ Created secret gist a.md\nhttps://gist.github.com/somebody/0123456789abcdef0123456789abcdef\n",
			[]string{"succeeded: gh gist delete 0123456789abcdef0123456789abcdef --yes"}},
		{"gh label create", `gh label create urgent -R owner/name -c ff0000`, 0, "✓ Label \"urgent\" created in owner/name\n",
			[]string{"succeeded: gh label delete urgent --repo owner/name --yes"}},
		{"gh label create over another", `gh label create urgent -R owner/name --force`, 0, "", []string{"succeeded: no-compensation "}},
		{"gh label create somewhere", `gh label create urgent`, 0, "", []string{"succeeded: no-compensation "}},
		{"gh pr merge", `gh pr merge 7 --squash`, 0, "✓ Squashed and merged pull request owner/name#7 (Topic)\n", []string{"succeeded: impossible "}},

		{"glab mr create", `glab mr create --fill`, 0, "\nCreating merge request for topic into main in group/sub/name\n\n!4 Topic (topic)\n https://gitlab.com/group/sub/name/-/merge_requests/4\n\n",
			[]string{"succeeded: glab mr close 4 -R https://gitlab.com/group/sub/name"}},
		{"glab issue create", `glab issue create -t x`, 0, "#9 x (less than a minute ago)\n https://gitlab.com/group/name/-/issues/9\n\n",
			[]string{"succeeded: glab issue close 9 -R https://gitlab.com/group/name"}},

		{"kubectl create, place named", `kubectl create deployment web --image=nginx --context prod -n shop`, 0, "deployment.apps/web created\n",
			[]string{"succeeded: kubectl delete deployment.apps/web --context prod --namespace shop --ignore-not-found"}},
		{"kubectl create, place not named", `kubectl create deployment web --image=nginx`, 0, "deployment.apps/web created\n", []string{"succeeded: no-compensation "}},
		{"kubectl apply of something new", `kubectl apply -f a.yaml --context prod -n shop`, 0, "service/web created\n",
			[]string{"succeeded: kubectl delete service/web --context prod --namespace shop --ignore-not-found"}},
		{"kubectl apply of something old", `kubectl apply -f a.yaml --context prod -n shop`, 0, "service/web configured\n", []string{"succeeded: missing-value object"}},
		{"kubectl apply of several", `kubectl apply -f a.yaml --context prod -n shop`, 0, "service/web created\ndeployment.apps/web configured\n",
			[]string{"succeeded: missing-value object"}},
		{"kubectl apply that failed halfway", `kubectl apply -f a.yaml --context prod -n shop`, 1, "service/web created\nerror: x\n", []string{"unknown: missing-value object"}},
		{"helm install, place named", `helm install web ./chart --kube-context prod -n shop`, 0, "NAME: web\nSTATUS: deployed\n",
			[]string{"succeeded: helm uninstall web --kube-context prod --namespace shop"}},
		{"helm install, place not named", `helm install web ./chart`, 0, "", []string{"succeeded: no-compensation "}},

		{"aws s3 mb", `aws s3 mb s3://some-bucket`, 0, "make_bucket: some-bucket\n", []string{"succeeded: aws s3 rb s3://some-bucket"}},
		{"aws s3 mb with a profile", `aws --profile p s3 mb s3://some-bucket`, 0, "make_bucket: some-bucket\n", []string{"succeeded: no-compensation "}},
		{"cargo yank", `cargo yank core@0.1.0`, 0, "    Updating crates.io index\n        Yank core@0.1.0\n",
			[]string{"succeeded: cargo yank core --version 0.1.0 --undo"}},
		{"cargo yank elsewhere", `cargo yank core@0.1.0 --registry x`, 0, "", []string{"succeeded: no-compensation "}},
		{"npm publish", `npm publish`, 0, "+ pkg@1.0.0\n", []string{"succeeded: impossible "}},
		{"npm publish refused", `npm publish`, 1, "npm error code E403\n", []string{"failed: "}},
		{"on a cluster that is named elsewhere", `KUBECONFIG=x kubectl create deployment web --context prod -n shop`, 0, "deployment.apps/web created\n", []string{"succeeded: no-compensation "}},
		{"on a cluster that is named elsewhere before", `export KUBECONFIG=x; kubectl create deployment web --context prod -n shop`, 0, "deployment.apps/web created\n", []string{"succeeded: no-compensation "}},
		{"on a cluster that is named by its server", `kubectl create deployment web --context prod -n shop --server x`, 0, "deployment.apps/web created\n", []string{"succeeded: no-compensation "}},
		{"in a container", `docker run img kubectl create deployment web --context prod -n shop`, 0, "deployment.apps/web created\n", []string{"succeeded: no-compensation "}},
		{"on another host", `GH_HOST=git.example.com gh label create urgent -R owner/name`, 0, "", []string{"succeeded: no-compensation "}},
		{"with another token", `GH_TOKEN=x gh issue create`, 0, "https://github.com/o/n/issues/1\n",
			[]string{"succeeded: gh issue close https://github.com/o/n/issues/1 --reason 'not planned'"}},
		{"with another account", `AWS_PROFILE=p aws s3 mb s3://some-bucket`, 0, "make_bucket: some-bucket\n", []string{"succeeded: no-compensation "}},
		{"helm on a cluster that is named elsewhere", `helm install web ./chart --kube-context prod -n shop --kubeconfig x`, 0, "", []string{"succeeded: no-compensation "}},
		{"a program that is not there", `terraform apply`, 127, "bash: terraform: command not found\n", []string{"failed: "}},
		{"terraform apply that failed", `terraform apply -auto-approve`, 1, "Error: x\n", []string{"unknown: no-compensation "}},

		{"curl that was never connected", `curl -d x https://example.com`, 7, "curl: (7) Failed to connect\n", []string{"failed: "}},
		{"curl that got no answer", `curl -m 5 -d x https://example.com`, 28, "curl: (28) Operation timed out\n", []string{"unknown: no-compensation "}},
		{"curl that was told no", `curl -f -d x https://example.com`, 22, "curl: (22) The requested URL returned error: 404\n", []string{"failed: "}},
		{"a failure of something else", `curl -d x https://example.com | jq .`, 7, "", []string{"unknown: no-compensation "}},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := Rules{}.Recognise(ToolCall{Tool: "Bash", Command: test.command})
			effects := Rules{}.Recognise(ToolCall{Tool: "Bash", Command: test.command, Output: test.output, Exit: &test.exit})
			require.Len(t, before, len(effects))
			var got []string
			for i, e := range effects {
				assert.Equal(t, before[i].Rule, e.Rule)
				got = append(got, string(e.Status)+": "+fate(t, e, h))
			}
			assert.Equal(t, test.want, got)
		})
	}
}

// fate is what a boundary would do with one effect.
func fate(t *testing.T, e Effect, h Handlers) string {
	t.Helper()
	plan, _ := Boundary([]Effect{e}, BoundaryOptions{}, h)
	switch {
	case len(plan.Compensate) == 1:
		return plan.Compensate[0].Shown
	case len(plan.Listed) == 1:
		return "listed"
	case len(plan.Blocked) == 1:
		return string(plan.Blocked[0].Reason) + " " + strings.Join(plan.Blocked[0].Missing, ", ")
	}
	return ""
}
