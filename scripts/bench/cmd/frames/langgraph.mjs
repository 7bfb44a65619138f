// Appends steps to LangGraph's saver: for every line read, a number of them,
// and writes how many nanoseconds they took.
import { createInterface } from "node:readline";
import { createHash } from "node:crypto";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { uuid6 } from "@langchain/langgraph-checkpoint";

const [path, channels] = [process.argv[2], Number(process.argv[3])];
const saver = SqliteSaver.fromConnString(path);
saver.db.pragma("journal_mode = WAL");
saver.db.pragma("synchronous = NORMAL");

const value = (n) => createHash("sha256").update(String(n)).digest("hex");
const name = (i) => `build/module-${String(i).padStart(5, "0")}`;
const values = {}, versions = {};
for (let i = 0; i < channels; i++) {
  values[name(i)] = value(i);
  versions[name(i)] = 1;
}

let config = { configurable: { thread_id: "run", checkpoint_ns: "" } };
let step = 0;

async function append() {
  step++;
  const changed = {};
  for (let i = 0; i <= step % 2; i++) {
    const key = name((step * 7 + i) % channels);
    values[key] = value(step * 2 + i + channels);
    versions[key] = changed[key] = step + 1;
  }
  const checkpoint = {
    v: 4, id: uuid6(step), ts: new Date().toISOString(),
    channel_values: { ...values }, channel_versions: { ...versions }, versions_seen: {},
  };
  config = await saver.put(config, checkpoint, { source: "loop", step, parents: {} }, changed);
  const writes = Object.keys(changed).map((key) => [key, values[key]]);
  await saver.putWrites(config, writes, `task-${step}`);
}

for await (const line of createInterface({ input: process.stdin })) {
  const began = process.hrtime.bigint();
  for (let i = Number(line); i > 0; i--) await append();
  console.log(String(process.hrtime.bigint() - began));
}
