// Installed by retcon agents add opencode. Remove it with: retcon agents remove opencode
//
// Tells retcon what opencode is about to do and has done, and waits for the
// answer. Whatever goes wrong here, opencode goes on.
import { spawn } from "node:child_process"

const exe = "{{exe}}"
const patience = 10_000 // milliseconds

function tell(name, envelope) {
  return new Promise((resolve) => {
    let out = ""
    const answer = () => {
      clearTimeout(timer)
      try {
        resolve(JSON.parse(out) ?? {})
      } catch {
        resolve({})
      }
    }
    const child = spawn(exe, ["hook", "opencode", name], { stdio: ["pipe", "pipe", "ignore"] })
    const timer = setTimeout(() => child.kill("SIGKILL"), patience)
    child.on("error", answer)
    child.on("close", answer)
    child.stdout.on("data", (data) => (out += data))
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(envelope))
  }).catch(() => ({}))
}

const wanted = new Set([
  "session.created", "session.updated", "session.deleted", "session.idle", "session.error", "session.compacted",
])

// Of the updates only those count that tell of an undo made in opencode, and
// of a part only that a tool has failed: no hook is called after that.
const reverted = new Map()
function counts(event) {
  if (event.type === "message.part.updated") {
    const part = event.properties?.part
    return part?.type === "tool" && part.state?.status === "error"
  }
  if (event.type === "session.updated") {
    const { id, revert } = event.properties?.info ?? {}
    const at = revert?.messageID ?? ""
    const changed = at !== (reverted.get(id) ?? "")
    reverted.set(id, at)
    return changed
  }
  return wanted.has(event.type)
}

export const Retcon = async ({ directory, worktree }) => {
  const say = (hook, input, output) => tell(hook, { hook, input, output, directory, worktree })
  const begun = new Map() // sessions that are being told of: nothing of theirs is told before
  const deny = (answer) => {
    if (answer.deny) throw new Error(answer.deny)
  }
  return {
    event: async ({ event }) => {
      if (!counts(event)) return
      const told = say("event", event)
      if (event.type === "session.created") begun.set(event.properties?.info?.id, told)
      await told
    },
    "tool.execute.before": async (input, output) => deny(await say("tool.execute.before", input, output)),
    "tool.execute.after": async (input, output) => {
      await say("tool.execute.after", input, output)
    },
    "chat.message": async (input, output) => {
      await begun.get(input.sessionID)
      begun.delete(input.sessionID)
      const answer = await say("chat.message", input, output)
      deny(answer)
      if (answer.note) {
        const { id: messageID, sessionID } = output.message
        const id = (output.parts.at(-1)?.id ?? "prt_") + "z" // parts are in the order of their ids
        output.parts.push({ id, messageID, sessionID, type: "text", text: answer.note, synthetic: true })
      }
    },
  }
}
