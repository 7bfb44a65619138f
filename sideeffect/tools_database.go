package sideeffect

import (
	"strings"
)

// databases are where data is kept with other people. A file opened by sqlite3
// is part of a worktree, or of nobody's business.
func databases() map[string]tool {
	const pg = "-h --host -p --port -U --username -d --dbname"
	return map[string]tool{
		"psql pgcli":                     {judge: judgePsql},
		"mysql mariadb mycli":            {judge: judgeMysql},
		"createdb createuser pg_restore": {judge: judgeRestore},
		"dropdb dropuser":                {judge: always(never("what was dropped is gone"))},
		"vacuumdb reindexdb clusterdb":   {judge: always(Compensation{})},
		"mysqladmin mariadb-admin":       {reads: `status, extended-status, ping, processlist, variables, version`, rest: Write, valued: pg + " -u --user -P -S"},
		"mysqlimport mariadb-import":     {judge: always(Compensation{})},
		"redis-cli valkey-cli keydb-cli": {judge: judgeRedis},
		"mongosh mongo":                  {judge: judgeMongo},
		"mongoimport mongorestore":       {judge: always(Compensation{})},
		"sqlcmd":                         {judge: judgeSQLOption("-Q", "-q", "-i")},
		"clickhouse-client":              {judge: judgeSQLOption("--query", "-q", "--queries-file")},
		"cqlsh":                          {judge: judgeSQLOption("-e", "--execute", "-f")},
		"snowsql":                        {judge: judgeSQLOption("-q", "--query", "-f")},
		"usql":                           {judge: judgeSQLOption("-c", "--command", "-f")},
		"duckdb sqlite3":                 {},
		"flyway":                         {reads: "info, validate, check, version", rest: Write},
		"liquibase":                      {reads: "status, validate, history, diff, update-sql, rollback-sql, generate-changelog", rest: Write},
		"influx":                         {reads: "query, ping, version, config, bucket list, org list", rest: Write},
		"kafka-console-producer kafka-console-producer.sh kcat kafkacat": {judge: judgeKafka},
		"kafka-topics kafka-topics.sh": {judge: func(a args) (finding, decision) {
			if a.has("--create", "--delete", "--alter") {
				return write("kafka-topics")
			}
			return nothing()
		}},
		"rabbitmqadmin": {reads: "list, show, export", rest: Write, valued: "-H --host -P --port -u --username -p --password -V --vhost"},
		"mosquitto_pub": {judge: always(never("a message can't be called back"))},
		"nats": {plain: `pub, publish, request, kv put, kv del, kv add, stream add, stream rm, stream purge, consumer add, consumer rm, object put,
			object rm`},
	}
}

var (
	// A statement that begins so changes nothing, unless another word in it does.
	readSQL  = pattern(`(?is)^\s*(select|show|explain|describe|desc|table|values|with|use|\\[dlqxzetc?][a-zA-Z+]*\b|\\(?:timing|conninfo|pset|echo|a|t|h)\b|help|list|--|$)`)
	writeSQL = pattern(`(?is)\b(insert|update|delete|drop|create|alter|truncate|grant|revoke|merge|replace\s+into|into\s+outfile|call|do|copy|analyze|` +
		`vacuum|reindex|refresh|select\s+.*\binto|lock|nextval|setval|pg_terminate_backend|pg_cancel_backend|for\s+update)\b`)
	comments = pattern(`(?s)/\*.*?\*/|--[^\n]*`)
	quoted   = pattern(`'(?:[^']|'')*'`)
)

// judgeSQL judges statements that are known, or not.
func judgeSQL(rule, sql string, known bool) (finding, decision) {
	if !known || strings.ContainsRune(sql, hole) && !readsOnly(sql) {
		return maybe(rule)
	}
	if readsOnly(sql) {
		return nothing()
	}
	return write(rule)
}

func readsOnly(sql string) bool {
	sql = quoted().ReplaceAllString(comments().ReplaceAllString(sql, " "), "''")
	for statement := range strings.SplitSeq(sql, ";") {
		if !readSQL().MatchString(statement) || writeSQL().MatchString(statement) {
			return false
		}
	}
	return true
}

// judgeStatements puts together what a client is given to execute.
func judgeStatements(a args, rule string, statements []string, file bool) (finding, decision) {
	for _, sql := range statements {
		if f, d := judgeSQL(rule, sql, true); d == isEffect {
			return f, d
		}
	}
	switch in := a.inv.stdin; {
	case file:
		return maybe(rule)
	case len(statements) == 0 && in.given:
		return judgeSQL(rule, in.text, in.known)
	}
	return nothing()
}

func judgePsql(a args) (finding, decision) {
	var statements []string
	for i, w := range a.words {
		switch {
		case (w.text == "-c" || w.text == "--command") && i+1 < len(a.words):
			statements = append(statements, a.words[i+1].text)
		case strings.HasPrefix(w.text, "--command="):
			statements = append(statements, w.text[len("--command="):])
		case bundled(w.text, 'c') && i+1 < len(a.words): // -Atc
			statements = append(statements, a.words[i+1].text)
		}
	}
	return judgeStatements(a, a.tool, statements, a.has("-f", "--file"))
}

func judgeMysql(a args) (finding, decision) {
	var statements []string
	for i, w := range a.words {
		switch {
		case (w.text == "-e" || w.text == "--execute" || bundled(w.text, 'e')) && i+1 < len(a.words):
			statements = append(statements, a.words[i+1].text)
		case strings.HasPrefix(w.text, "--execute="):
			statements = append(statements, w.text[len("--execute="):])
		case strings.HasPrefix(w.text, "-e"):
			statements = append(statements, w.text[2:])
		}
	}
	return judgeStatements(a, a.tool, statements, false)
}

// bundled: -Atc ends with the option c. Options that take a value are not in it.
func bundled(w string, option byte) bool {
	if len(w) < 3 || w[0] != '-' || w[1] == '-' || w[len(w)-1] != option {
		return false
	}
	return strings.Trim(w[1:len(w)-1], "AtqXxnwWsEbBNrHv1") == ""
}

func judgeSQLOption(options ...string) func(args) (finding, decision) {
	return func(a args) (finding, decision) {
		for _, o := range options[:len(options)-1] {
			if sql, ok := a.option(o); ok {
				return judgeSQL(a.tool, sql, true)
			}
		}
		return judgeStatements(a, a.tool, nil, a.has(options[len(options)-1]))
	}
}

func judgeRestore(a args) (finding, decision) {
	if a.tool == "pg_restore" && (a.has("-l", "--list") || !a.has("-d", "--dbname")) {
		return nothing()
	}
	return write(a.tool)
}

const redisReads = `get mget exists ttl pttl keys scan type strlen getrange hget hmget hgetall hkeys hvals hlen hscan hexists lrange lindex llen
	smembers scard sismember sscan srandmember zrange zrangebyscore zscore zcard zcount zrank zrevrange zscan xrange xread xlen xinfo info ping dbsize
	echo time lastsave memory object randomkey bitcount getbit pfcount geopos geodist hello command latency slowlog monitor subscribe psubscribe
	dump role wait select auth`

func judgeRedis(a args) (finding, decision) {
	ops := a.operands("-h -p -s -a -u -n -r -i -d -D --user --pass --cacert --cert --key")
	if len(ops) == 0 {
		if a.inv.stdin.given || a.has("--eval", "--pipe", "--cluster") {
			return maybe(a.tool)
		}
		return nothing()
	}
	command := strings.ToLower(ops[0].text)
	sub := ""
	if len(ops) > 1 {
		sub = strings.ToLower(ops[1].text)
	}
	switch {
	case a.has("--eval") || ops[0].unknown():
		return maybe(a.tool)
	case hasWord(redisReads, command):
		return nothing()
	case hasWord("config client cluster acl", command) && hasWord("get list info nodes slots whoami id", sub):
		return nothing()
	case hasWord("flushall flushdb del unlink", command):
		return finding{class: Write, rule: a.tool + " " + command, undo: never("what was deleted is gone")}, isEffect
	}
	return write(a.tool + " " + command)
}

var mutatesMongo = pattern(`(?i)\.(insert|update|delete|drop|remove|create|replace|save|bulkWrite|rename|findAndModify|` +
	`findOneAnd|aggregate\(.*\$(?:out|merge)|runCommand|adminCommand|shutdown|eval)`)

func judgeMongo(a args) (finding, decision) {
	ops := a.operands("--host --port -u --username -p --password --authenticationDatabase --eval")
	script, ok := a.option("--eval")
	switch {
	case ok && mutatesMongo().MatchString(script):
		return write(a.tool)
	case ok && strings.ContainsRune(script, hole), len(ops) > 1, len(ops) == 1 && strings.HasSuffix(ops[0].text, ".js"):
		return maybe(a.tool)
	case !ok && a.inv.stdin.given:
		if a.inv.stdin.known && !mutatesMongo().MatchString(a.inv.stdin.text) {
			return nothing()
		}
		return maybe(a.tool)
	}
	return nothing()
}

func judgeKafka(a args) (finding, decision) {
	if strings.HasPrefix(a.tool, "kc") || a.tool == "kafkacat" {
		if !a.has("-P") {
			return nothing()
		}
	}
	return finding{class: Write, rule: a.tool, undo: never("a message can't be called back")}, isEffect
}
