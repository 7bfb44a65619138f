package sideeffect

import (
	"slices"
	"strings"
)

// registries are where packages, images and sites are published.
func registries() map[string]tool {
	forGood := never("what was published stays published; publish a newer version or mark this one as bad")
	publish := []verb{{path: "publish", undo: forGood}}
	upload := []verb{{path: "upload", undo: forGood}}
	push := []verb{{path: "push", undo: never("a pushed image may have been pulled; delete its tag in the registry")}}
	npm := tool{
		valued: "--prefix -C --dir -w --workspace --filter -F --registry --tag --access --otp --cwd --userconfig",
		atomic: true,
		reads: `dist-tag ls, dist-tag list, dist-tags ls, owner ls, owner list, access list, access get, access ls-packages, team ls,
			token list, tag list, npm tag list, npm info, npm whoami, npm login, npm logout, npm audit, org ls, org list, hook ls`,
		writes: []verb{{path: "publish", undo: forGood}, {path: "pub", undo: forGood}, {path: "npm publish", undo: forGood},
			{path: "unpublish", undo: forGood}},
		plain: `deprecate, undeprecate, dist-tag add, dist-tag rm, dist-tag set, dist-tags add, dist-tags rm, owner add, owner rm,
			access set, access grant, access revoke, access public, access restricted, team create, team destroy, team add, team rm,
			token create, token revoke, tag add, tag remove, npm tag add, npm tag remove, org set, org rm, hook add, hook rm, star,
			unstar, stage`,
	}
	pnpm, yarn := npm, npm
	pnpm.judge = anywhere("publish", forGood)
	yarn.judge = anywhere("publish", forGood)
	return map[string]tool{
		"npm": npm, "pnpm": pnpm, "yarn yarnpkg": yarn,
		"bun":  {writes: publish, atomic: true, valued: "--cwd"},
		"deno": {writes: publish, plain: "deploy"},
		"jsr":  {writes: publish}, "vsce ovsx": {writes: publish, plain: "unpublish, delete-publisher"},
		"cargo": {atomic: true, valued: "--manifest-path --config -Z --color -C", plain: "owner", judge: judgeCargo,
			writes: []verb{{path: "publish", undo: forGood}, {path: "yank", make: yanked, none: "--undo --registry --index"}}},
		"twine": {writes: upload, plain: "register", valued: "-r --repository"},
		"uv":    {writes: publish}, "poetry": {writes: publish, valued: "-C --directory -P --project"}, "hatch": {writes: publish},
		"flit": {writes: publish}, "pdm": {writes: publish, valued: "-p --project"}, "rye": {writes: publish},
		"maturin": {writes: []verb{{path: "publish", undo: forGood}, {path: "upload", undo: forGood}}},
		"gem":     {writes: []verb{{path: "push", undo: forGood}}, plain: "yank, owner"},
		"dotnet":  {writes: []verb{{path: "nuget push", undo: forGood}, {path: "nuget delete", undo: forGood}}},
		"nuget":   {writes: []verb{{path: "push", undo: forGood}, {path: "delete", undo: forGood}}},
		"conan":   {writes: upload}, "cabal": {writes: upload}, "luarocks": {writes: upload},
		"opam": {writes: publish}, "flutter dart": {writes: []verb{{path: "pub publish", undo: forGood}}},
		"mix":              {writes: []verb{{path: "hex.publish", undo: forGood}}, plain: "hex.retire, hex.owner"},
		"pod":              {writes: []verb{{path: "trunk push", undo: forGood}, {path: "trunk delete", undo: forGood}}, plain: "repo push"},
		"lerna":            {writes: publish, plain: "version"},
		"np":               {judge: always(forGood)},
		"changeset":        {writes: publish},
		"semantic-release": {judge: unless("-d", forGood)},
		"release-it":       {judge: always(forGood)},
		"goreleaser":       {judge: judgeGoreleaser},
		"mvn mvnw":         {judge: goals(forGood, "deploy", "release:perform", "release:prepare", "deploy:deploy", "nexus-staging:release")},
		"gradle gradlew":   {judge: judgeGradle},
		"sbt":              {judge: goals(forGood, "publish", "publishSigned", "+publish", "+publishSigned", "sonatypeRelease")},

		"docker podman nerdctl": {
			valued: "-H --host -c --context --config -l --log-level",
			atomic: true, writes: push, judge: judgeImage,
			plain: `image push, compose push, manifest push, plugin push, buildx imagetools create, trust sign, stack deploy, stack up, stack rm,
				stack down, service create, service update, service rm, service scale, service rollback, swarm init, swarm join, swarm leave,
				swarm update, node update, node rm, node promote, node demote, secret create, secret rm, config create, config rm`,
		},
		"docker-compose": {plain: "push", valued: "-f --file -p --project-name"},
		"buildah":        {writes: push, plain: "manifest push"},
		"skopeo":         {plain: "copy, sync, delete"},
		"crane gcrane":   {plain: "push, copy, cp, tag, delete, append, mutate, rebase, flatten"},
		"oras":           {plain: "push, copy, cp, tag, delete, attach, blob push, blob delete, manifest push, manifest delete"},
		"ko":             {plain: "publish, build, apply, create, resolve"},
		"cosign":         {plain: "sign, attest, attach, copy, clean, upload"},
		"huggingface-cli hf": {plain: `upload, upload-large-folder, repo create, repo delete, repo move, repo-files delete, repo tag create, repo tag delete,
			jobs run`},
		"vercel vc":   {judge: judgeVercel, rest: Write, reads: vercelReads},
		"netlify ntl": {plain: "deploy, env:set, env:unset, sites:create, sites:delete, functions:invoke, api", reads: "status, login, dev, build"},
		"wrangler": {plain: `deploy, publish, delete, rollback, versions upload, versions deploy, triggers deploy, pages deploy, pages publish,
			secret put, secret bulk, secret delete, kv key put, kv key delete, kv bulk put, kv bulk delete, kv namespace create,
			kv namespace delete, r2 object put, r2 object delete, r2 bucket create, r2 bucket delete, d1 create, d1 delete, d1 execute,
			d1 migrations apply, queues create, queues delete`},
		"firebase": {plain: `deploy, hosting:disable, hosting:channel:deploy, functions:delete, firestore:delete, database:set, database:update,
			database:push, database:remove, projects:create, apps:create`},
		"surge gh-pages": {judge: always(Compensation{})},
	}
}

// always: calling the program at all is the effect.
func always(undo Compensation) func(args) (finding, decision) {
	return func(a args) (finding, decision) {
		return finding{class: Write, rule: a.tool, undo: undo}, isEffect
	}
}

func unless(option string, undo Compensation) func(args) (finding, decision) {
	return func(a args) (finding, decision) {
		if a.has(option) {
			return nothing()
		}
		return always(undo)(a)
	}
}

// goals: the program takes any number of goals, and these reach outside.
func goals(undo Compensation, outside ...string) func(args) (finding, decision) {
	return func(a args) (finding, decision) {
		for _, w := range a.words {
			if slices.Contains(outside, w.text) {
				return finding{class: Write, rule: a.tool + " " + w.text, undo: undo}, isEffect
			}
		}
		return nothing()
	}
}

// anywhere: the verb may follow others, as in yarn workspaces foreach npm publish.
// A script of that name is somebody else's program.
func anywhere(verb string, undo Compensation) func(args) (finding, decision) {
	return func(a args) (finding, decision) {
		ops := a.operands("--filter -F -C --dir --cwd --tag --registry --access --otp")
		if len(ops) > 1 && (ops[0].text == "run" || ops[0].text == "run-script" || ops[0].text == "add" || ops[0].text == "info") {
			return byVerbs()
		}
		for _, w := range ops {
			if w.text == verb {
				return finding{class: Write, rule: a.tool + " " + verb, undo: undo}, isEffect
			}
		}
		return byVerbs()
	}
}

func judgeCargo(a args) (finding, decision) {
	if len(a.words) > 0 && strings.HasPrefix(a.words[0].text, "+") { // a toolchain
		a.words = a.words[1:]
	}
	ops := a.operands("")
	if len(ops) > 0 && ops[0].text == "owner" && a.has("-l", "--list") {
		return nothing()
	}
	if len(ops) > 0 && (ops[0].text == "release" || ops[0].text == "smart-release") {
		if a.has("-x", "--execute") {
			return write("cargo release")
		}
		return nothing()
	}
	return toolNamed("cargo").byVerb(a)
}

// yanked: cargo yank takes itself back, for the same crate on the same registry.
func yanked(a args) (Compensation, map[string]string) {
	ops := a.operands("--version --vers --token --manifest-path --config -Z --color")
	version, ok := a.option("--version", "--vers")
	crate := ""
	if len(ops) == 2 {
		crate = ops[1].text
	}
	if name, v, cut := strings.Cut(crate, "@"); cut {
		crate, version, ok = name, v, true
	}
	if !ok || crate == "" || strings.ContainsRune(crate+version, hole) {
		return Compensation{}, nil
	}
	return argv("cargo", "yank", "{{.crate}}", "--version", "{{.version}}", "--undo"), map[string]string{"crate": crate, "version": version}
}

func judgeGoreleaser(a args) (finding, decision) {
	ops := a.operands("-f --config")
	skip, _ := a.option("--skip")
	if len(ops) == 0 || ops[0].text != "release" && ops[0].text != "publish" && ops[0].text != "continue" ||
		a.has("--snapshot", "--skip-publish") || strings.Contains(skip, "publish") {
		return nothing()
	}
	return write("goreleaser " + ops[0].text)
}

func judgeGradle(a args) (finding, decision) {
	for _, w := range a.words {
		task := w.text[strings.LastIndexByte(w.text, ':')+1:]
		if !w.option() && strings.HasPrefix(task, "publish") && task != "publishToMavenLocal" {
			return write(a.tool + " " + task)
		}
	}
	return nothing()
}

// judgeImage: building reaches outside only when it pushes.
func judgeImage(a args) (finding, decision) {
	ops := a.operands("-H --host -c --context --config -l --log-level")
	if len(ops) == 0 {
		return nothing()
	}
	first := ops[0].text
	if first == "build" || first == "buildx" || first == "bake" || first == "compose" {
		output, _ := a.option("-o", "--output")
		if a.has("--push") || strings.Contains(output, "push=true") || strings.Contains(output, "type=registry") {
			return write(a.tool + " " + first + " --push")
		}
	}
	if first == "compose" {
		ops = a.operands("-H --host -c --context -f --file -p --project-name --env-file --profile --project-directory")
		if len(ops) > 1 && ops[1].text == "push" {
			return write(a.tool + " compose push")
		}
	}
	return byVerbs()
}

const vercelReads = `ls, list, inspect, logs, log, whoami, pull, build, dev, link, login, logout, switch, teams ls, env ls, env list, env pull,
	domains ls, domains inspect, certs ls, alias ls, dns ls, project ls, init, git ls, secrets ls, bisect`

// judgeVercel: with no verb, or a folder, it deploys.
func judgeVercel(a args) (finding, decision) {
	ops := a.operands("-t --token -S --scope --cwd -A --local-config -Q --global-config -e --env -b --build-env -m --meta")
	if len(ops) == 0 {
		return write(a.tool + " deploy")
	}
	return byVerbs()
}
