package sideeffect

import (
	"strings"
)

// created matches every object that is reported, and names those that are new.
var created = pattern(`(?m)^(?:(?P<object>[a-z][a-z0-9.-]*/[a-z0-9][a-z0-9.:-]*) created|\S+/\S+ (?:configured|unchanged|serverside-applied))\s*$`)

// clusters are where programs run for other people.
func clusters() map[string]tool {
	const scope = "-n --namespace --context --cluster --kubeconfig --user --as --as-group --token -s --server --request-timeout --cache-dir -v"
	return map[string]tool{
		"kubectl oc": {
			valued: scope,
			reads: `get, describe, logs, log, top, explain, api-resources, api-versions, cluster-info, config, version, diff, events, auth can-i,
				auth whoami, wait, completion, plugin, options, kustomize, port-forward, proxy, rollout status, rollout history,
				create token, status, whoami, login, logout, project, projects, apply view-last-applied, krew, ctx, ns, tree, neat`,
			writes: []verb{{path: "create", make: createdObject, find: created}, {path: "apply", make: createdObject, find: created},
				{path: "delete", undo: never("what was deleted is gone")}},
			plain: `apply set-last-applied, apply edit-last-applied, edit, replace, patch, scale, autoscale, set, label, annotate, taint, drain,
				cordon, uncordon, rollout restart, rollout undo, rollout pause, rollout resume, expose, run, attach, debug, certificate,
				auth reconcile, adm, new-app, new-project, start-build, import-image, tag, policy, rsync, rsh`,
			rest:  Maybe,
			judge: judgeKubectl,
		},
		"helm": {
			valued: scope + " --kube-context --kube-token --registry-config --repository-cache --repository-config --kube-apiserver",
			reads: `list, ls, status, get, history, hist, search, show, inspect, template, lint, repo, dependency, dep, env, version, pull,
				fetch, package, create, completion, plugin, verify, registry, diff`,
			writes: []verb{{path: "install", make: release}},
			plain:  "upgrade, uninstall, delete, del, un, rollback, test, push",
			rest:   Maybe,
		},
		"kustomize": {}, "helmfile": {reads: `list, diff, template, lint, build, fetch, deps, status, repos, show-dag, write-values, version, init`, rest: Write},
		"terraform tofu terragrunt": {
			valued: "-chdir --terragrunt-working-dir --working-dir",
			reads: `init, plan, validate, fmt, show, output, graph, providers, version, console, get, state list, state show, state pull,
				workspace list, workspace show, workspace select, login, logout, metadata, modules, hclfmt, render-json, run-all plan,
				run-all validate, run-all init, run-all output, run-all show, run-all fmt, graph-dependencies, find, list, run plan,
				run output, run init, run validate, stack generate`,
			writes: []verb{{path: "destroy", undo: never("what was destroyed is gone")}},
			plain: `apply, import, taint, untaint, refresh, state rm, state mv, state push, state replace-provider, workspace new,
				workspace delete, force-unlock, test, run-all apply, run-all destroy, run apply, run destroy, run-all, run, stack run,
				apply-all, destroy-all`,
			rest: Maybe,
		},
		"pulumi": {
			valued: "-s --stack -C --cwd",
			reads: `preview, pre, stack ls, stack output, stack graph, stack export, stack history, stack select, stack tag ls, config, whoami,
				logs, about, version, new, login, logout, plugin, schema, gen-completion, package, convert, install, console`,
			plain: "up, update, destroy, down, import, refresh, cancel, watch, stack init, stack rm, stack rename, stack import, state, env, deployment",
			rest:  Maybe,
		},
		"cdk cdktf": {reads: `synth, synthesize, list, ls, diff, doctor, init, docs, doc, context, metadata, notices, acknowledge, get, output, provider`, rest: Write},
		"sam":       {plain: "deploy, delete, sync, publish, remote invoke, package", valued: "-t --template-file"},
		"serverless sls": {plain: "deploy, remove, rollback, invoke", judge: func(a args) (finding, decision) {
			if ops := a.operands("-s --stage -r --region"); len(ops) > 1 && ops[0].text == "invoke" && ops[1].text == "local" {
				return nothing()
			}
			return byVerbs()
		}},
		"ansible ansible-playbook": {judge: func(a args) (finding, decision) {
			if a.has("--check", "-C", "--list-hosts", "--list-tasks", "--list-tags", "--syntax-check") || len(a.words) == 0 {
				return nothing()
			}
			return write(a.tool)
		}},
		"argocd": {reads: `app list, app get, app diff, app history, app logs, app manifests, app resources, app wait, version, context, login,
			cluster list, repo list, proj list, proj get`, rest: Write},
		"flux":     {reads: "get, check, logs, export, version, tree, diff, stats, trace, events, completion, build", rest: Write},
		"istioctl": {reads: "version, analyze, proxy-status, ps, proxy-config, pc, describe, validate, verify-install, manifest generate", rest: Maybe},
		"nomad": {reads: `status, node status, job status, job plan, job inspect, job history, job validate, plan, inspect, validate, alloc status,
			alloc logs, logs, version, server members, ui`, rest: Write},
		"consul": {reads: `kv get, kv export, members, catalog, info, version, monitor, validate, intention list, intention get, intention check,
			acl token list, acl token read`, rest: Write},
		"vault bao": {valued: "-address -namespace", reads: `read, list, status, login, kv get, kv list, kv metadata get, token lookup, version, print, path-help, secrets list,
			auth list, policy list, policy read, audit list, monitor, debug, operator members`, rest: Write},
		"etcdctl": {valued: "--endpoints --cacert --cert --key --user --password", reads: `get, watch, endpoint, member list, version, alarm list, user list, user get, role list, role get, snapshot status,
			snapshot save, check`, rest: Write},
		"doctl":  {reads: "auth, version, completion, account", judge: byWords(2, 3), rest: Maybe},
		"hcloud": {reads: "context, version, completion", judge: byWords(1, 2), rest: Maybe},
		"flyctl fly": {reads: `status, logs, auth, version, info, apps list, apps open, machine list, machine status, machines list, secrets list,
			volumes list, ips list, certs list, certs show, regions list, releases, image show, dashboard, doctor, platform, config show,
			config validate, config save, scale show, proxy, checks list, services list, postgres list, orgs list, orgs show`, rest: Write},
		"heroku": {reads: `apps, apps:info, info, logs, ps, config, config:get, releases, releases:info, addons, addons:info, auth:whoami, auth:login,
			login, status, pg, pg:info, pipelines, version, domains, help, git:remote, access, buildpacks, regions`, rest: Write, valued: "-a --app -r --remote"},
		"railway render": {reads: `status, logs, whoami, login, logout, list, link, variables, environment, open, docs, version, services, init, workspace`, rest: Write},
		"eb":             {reads: `status, list, logs, events, health, console, open, printenv, init, local, platform list`, rest: Write, valued: "-r --region --profile"},
		"supabase": {plain: `db push, db reset --linked, functions deploy, functions delete, secrets set, secrets unset, projects create, projects delete,
			branches create, branches delete, config push, storage cp, storage rm, storage mv, migration repair`},
		"prisma": {plain: "migrate deploy, migrate reset, migrate dev, migrate resolve, db push, db execute, db seed"},
		"stripe": {reads: "listen, logs, login, logout, config, status, version, get, samples, open, serve, completion", judge: byWords(1, 2), rest: Maybe},
		"twilio": {reads: "login, profiles:list, profiles:use, debugger:logs:list, plugins, help, autocomplete", rest: Maybe},
	}
}

// otherCluster are options by which a context is not what its name says.
var otherCluster = []string{"--kubeconfig", "--server", "-s", "--cluster", "--user", "--as", "--token", "--kube-apiserver", "--kube-token"}

// createdObject is undone only where it is known what was made and where: the
// context and the namespace of today need not be those of tomorrow.
func createdObject(a args) (Compensation, map[string]string) {
	context, okContext := a.option("--context")
	namespace, okNamespace := a.option("-n", "--namespace")
	if !okContext || !okNamespace || strings.ContainsRune(context+namespace, hole) || a.has("-k", "--kustomize", "--prune") || a.has(otherCluster...) {
		return Compensation{}, nil
	}
	return argv(a.tool, "delete", "{{.object}}", "--context", "{{.context}}", "--namespace", "{{.namespace}}", "--ignore-not-found"),
		map[string]string{"context": context, "namespace": namespace}
}

// release: likewise.
func release(a args) (Compensation, map[string]string) {
	ops := a.operands("-n --namespace --kube-context -f --values --set --set-string --set-file --version --repo --timeout --description")
	context, okContext := a.option("--kube-context")
	namespace, okNamespace := a.option("-n", "--namespace")
	if len(ops) != 3 || ops[1].unknown() || !okContext || !okNamespace || strings.ContainsRune(context+namespace, hole) || a.has(otherCluster...) {
		return Compensation{}, nil
	}
	return argv("helm", "uninstall", "{{.release}}", "--kube-context", "{{.context}}", "--namespace", "{{.namespace}}").gone("not found"),
		map[string]string{"release": ops[1].text, "context": context, "namespace": namespace}
}

func judgeKubectl(a args) (finding, decision) {
	ops := a.operands("-n --namespace --context --cluster --kubeconfig --user --as -s --server -c --container -f --filename -l --selector")
	if len(ops) == 0 {
		return byVerbs()
	}
	switch ops[0].text {
	case "exec":
		return judgeInner(a, "exec")
	case "cp":
		if len(ops) < 3 || strings.Contains(ops[len(ops)-1].text, ":") || ops[len(ops)-1].unknown() {
			return write(a.tool + " cp")
		}
		return nothing()
	}
	return byVerbs()
}

// judgeInner judges a program that runs elsewhere: one that only looks is
// nothing, and about the others nobody knows.
func judgeInner(a args, verb string) (finding, decision) {
	i := dashes(a.words)
	if i < 0 || i+1 == len(a.words) {
		return maybe(a.tool + " " + verb)
	}
	if a.harmless(join(a.words[i+1:])) {
		return nothing()
	}
	return maybe(a.tool + " " + verb)
}

// looking are programs that look, whatever their arguments.
const looking = `ls cat head tail grep egrep zgrep less more wc df du free uptime uname hostname whoami id date ps top pwd stat file which
	printenv test [ true echo printf lsblk lscpu ss netstat dig nslookup ping md5sum sha256sum sort uniq cut tr jq cd sleep journalctl nvidia-smi readlink`

// harmless reports whether a line that runs elsewhere only looks.
func (a args) harmless(line string) bool {
	if a.inv.hops >= maxScripts {
		return false
	}
	found, unread, err := read(line)
	if err != nil || len(unread) > 0 || len(found) == 0 || writesFile(line) {
		return false
	}
	for _, inv := range found {
		name := inv.argv[0].text
		inv.hops = a.inv.hops + 1
		_, effect := judge(inv)
		switch {
		case effect:
			return false
		case hasWord(looking, name):
		case toolNamed(name) != nil && (toolNamed(name).rest != "" || hasWord("curl wget psql mysql redis-cli aws", name)): // it was judged
		case (name == "docker" || name == "git") && len(inv.argv) > 1 && hasWord("ps logs images inspect stats version info status log diff show", inv.argv[1].text):
		default:
			return false
		}
	}
	return true
}
