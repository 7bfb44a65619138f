package sideeffect

import (
	"strings"
)

var madeBucket = pattern(`(?m)^make_bucket: (?P<bucket>[a-z0-9][a-z0-9.-]+)$`)

const (
	readVerbs = `list ls describe get show read view search find query lookup inspect status history logs log tail cat wait info diff export
		download check validate test preview explain stat du print open whoami versions usage balance retrieve`
	writeVerbs = `create delete update deploy add remove set unset enable disable import patch start stop restart reset resize submit publish
		invoke run call execute apply promote rollback undelete attach detach move mv cp rm rsync copy insert write cancel suspend resume ssh
		scp connect-to-serial-port restore failover clone rename approve reject destroy drop load mk purge regenerate renew rotate assign
		grant revoke up down scale migrate install uninstall upgrade exec send trigger confirm capture refund finalize pay void rebuild
		poweron poweroff reboot shutdown power-cycle upload`
)

// clouds are the command lines of the large providers. What does not read writes.
func clouds() map[string]tool {
	return map[string]tool{
		"aws":    {judge: judgeAWS},
		"gcloud": {judge: judgeGcloud, rest: Maybe},
		"gsutil": {reads: "ls, cat, du, stat, hash, version, help, config", judge: judgeCopy("gs://"), valued: "-h -o -u",
			plain: `mb, rb, rm, setmeta, acl, iam, compose, rewrite, cors, lifecycle, versioning, web, defacl, label, notification`},
		"bq":     {reads: `ls, show, head, version, init, info, get-iam-policy, wait, help, shell`, rest: Write, judge: judgeBQ, valued: "--project_id --dataset_id --location --format"},
		"az":     {judge: judgeAzure, rest: Maybe},
		"azcopy": {reads: "list, jobs, login, logout, env, doc", plain: "remove, rm, make, set-properties", judge: judgeCopy("https://")},
		"s3cmd s5cmd mc rclone": {reads: `ls, lsd, lsl, lsf, lsjson, la, du, info, cat, head, stat, tree, find, diff, size, check, about, version, config, configure,
			listremotes, md5sum, alias, select, get, ncdu, cryptcheck, help`, rest: Write, judge: judgeBucketTools},
		"oci ibmcloud linode-cli scw aliyun openstack": {judge: byWords(1, 4), rest: Maybe},
	}
}

// byWords looks for a verb among the first operands: the nouns before it are
// many, the verbs are few.
func byWords(from, to int) func(args) (finding, decision) {
	return func(a args) (finding, decision) {
		ops := a.operands(`--profile --project --region --zone --account --format --filter --configuration --subscription -g --resource-group
			-n --name -o --output --query --verbosity --limit`)
		for i := 0; i < len(ops) && i <= to; i++ {
			verb := ops[i].text
			stem, _, _ := strings.Cut(verb, "-")
			switch {
			case ops[i].unknown():
				return maybe(a.tool)
			case i < from:
			case hasWord(readVerbs, verb) || hasWord("get list describe show print read search", stem):
				return nothing()
			case hasWord(writeVerbs, verb) || hasWord(writeVerbs, stem):
				return write(a.tool + " " + join(ops[:i+1]))
			}
		}
		return byVerbs()
	}
}

const awsValued = "--profile --region --output --endpoint-url --query --color --ca-bundle --cli-read-timeout --cli-connect-timeout --cli-binary-format"

func judgeAWS(a args) (finding, decision) {
	ops := a.operands(awsValued)
	switch {
	case len(ops) == 0 && a.spread():
		return maybe("aws")
	case len(ops) == 0:
		return nothing()
	case ops[0].unknown():
		return maybe("aws")
	case ops[0].text == "configure" || ops[0].text == "sso" || ops[0].text == "login" || ops[0].text == "logout" || len(ops) == 1:
		return nothing()
	case ops[1].unknown():
		return maybe("aws " + ops[0].text)
	case ops[0].text == "s3":
		return judgeS3(a, ops)
	}
	service, op := ops[0].text, ops[1].text
	stem, rest, _ := strings.Cut(op, "-")
	const reading = `describe get list head lookup search select estimate simulate check decode resolve view filter tail wait query scan
		validate preview download`
	rule := "aws " + service + " " + op
	switch {
	case hasWord(reading, stem),
		hasWord("batch transact", stem) && strings.HasPrefix(rest, "get"), service == "sts", op == "help", op == "update-kubeconfig",
		service == "logs" && op == "start-query":
		return nothing()
	}
	if hasWord("delete terminate purge deregister", stem) {
		return finding{class: Write, rule: rule, undo: never("what was deleted is gone")}, isEffect
	}
	return write(rule)
}

func judgeS3(a args, ops []word) (finding, decision) {
	rule := "aws s3 " + ops[1].text
	switch ops[1].text {
	case "ls", "presign", "help":
		return nothing()
	case "cp", "mv", "sync":
		if len(ops) < 4 || ops[1].text == "mv" {
			return write(rule)
		}
		if to := ops[3]; !to.unknown() && !strings.HasPrefix(to.text, "s3://") {
			return nothing()
		}
		return write(rule)
	case "mb":
		f := finding{class: Write, rule: rule}
		if !a.has("--profile", "--region", "--endpoint-url") {
			// A name of a bucket is the only one in the world, and rb refuses one
			// that holds anything.
			f.find, f.undo, f.atomic = madeBucket(), argv("aws", "s3", "rb", "s3://{{.bucket}}").gone("NoSuchBucket"), true
		}
		return f, isEffect
	}
	return write(rule)
}

func judgeGcloud(a args) (finding, decision) {
	for len(a.words) > 0 && hasWord("alpha beta preview", a.words[0].text) {
		a.words = a.words[1:]
	}
	ops := a.operands("--project --account --configuration --impersonate-service-account --verbosity --format")
	if len(ops) == 0 {
		return nothing()
	}
	switch ops[0].text {
	case "config", "auth", "info", "version", "components", "init", "topic", "help", "emulators", "cheat-sheet", "feedback", "survey":
		return nothing()
	case "storage":
		if len(ops) > 1 && hasWord("cp mv rsync", ops[1].text) {
			return judgeCopy("gs://")(args{tool: "gcloud storage", words: a.words[1:], inv: a.inv})
		}
	case "deploy", "run", "import":
		return byWords(1, 4)(a) // nouns here
	case "container":
		if len(ops) > 2 && ops[2].text == "get-credentials" {
			return nothing()
		}
	}
	return byWords(0, 5)(a)
}

// judgeCopy: copying reaches outside when the destination does.
func judgeCopy(scheme string) func(args) (finding, decision) {
	return func(a args) (finding, decision) {
		ops := a.operands("-h -o -u -x -j")
		if len(ops) == 0 || !hasWord("cp mv rsync copy sync", ops[0].text) {
			return byVerbs()
		}
		to := ops[len(ops)-1]
		if ops[0].text != "mv" && !to.unknown() && !strings.HasPrefix(to.text, scheme) {
			return nothing()
		}
		return write(a.tool + " " + ops[0].text)
	}
}

func judgeBQ(a args) (finding, decision) {
	ops := a.operands("--project_id --dataset_id --location --format -n --max_rows --destination_table")
	if len(ops) == 0 || ops[0].text != "query" || a.has("--destination_table", "--replace", "--append_table") {
		return byVerbs()
	}
	return judgeSQL("bq query", join(ops[1:]), len(ops) > 1)
}

func judgeAzure(a args) (finding, decision) {
	ops := a.operands("--subscription --output -o --query")
	if len(ops) == 0 || hasWord("login logout account configure config version extension upgrade feedback find interactive cache init self-test", ops[0].text) {
		return nothing()
	}
	if ops[0].text == "rest" {
		method, given := a.option("--method", "-m")
		if !given {
			method = "GET"
		}
		return byMethod("az rest", method)
	}
	if ops[0].text == "bicep" {
		return nothing()
	}
	return byWords(1, 5)(a)
}

// judgeBucketTools: rclone copy remote:x . reads, rclone copy . remote:x writes.
func judgeBucketTools(a args) (finding, decision) {
	ops := a.operands("-c --config -P --profile --transfers --include --exclude --endpoint-url --max-depth")
	if len(ops) < 3 || !hasWord("copy cp sync copyto mirror", ops[0].text) {
		return byVerbs()
	}
	to := ops[len(ops)-1]
	local := !strings.Contains(to.text, ":") && a.tool != "mc"
	if !to.unknown() && local {
		return nothing()
	}
	return write(a.tool + " " + ops[0].text)
}
