/** What a model has to know of the server. Clients give it to the model before the first call. */
export const INSTRUCTIONS = `Shellfleet runs commands in persistent shells, each in a sandbox of its own on a host of a fleet.

- Sessions: exec opens the session that it names. Directory, variables, functions, files and background processes last from call to call. Commands of one session run one after another; use several sessions for work side by side.
- Long commands: exec answers before 45 s. If the status is not "ended", the command continues: call poll with its command_id, and with \`next\` as since, until it ends. Never start it again. cancel stops it. A command ends at its timeout_ms, 10 minutes by default.
- Output: long output is cut in the middle, and the cut is marked. Write large output to a file, and read parts of it with read_file, or filter it with grep, head and tail.
- Lost state: an answer says if the shell was lost or kept in part. Set directory and variables again then. restart_session gives a fresh shell; files stay.
- Sandbox: commands may write only where the sandbox allows it, and often have no network. session_info tells what it allows. If a command fails because of the sandbox, look for a way inside first. If the task needs more, call exec again with escalate and a reason: a person decides. Do not try to get around the sandbox.
- Approvals: a command may wait for a person (status "waiting for approval"). Poll it. If the person denies it, do not repeat it in other words.
- Secrets are masked in all output, for example as [REDACTED_SECRET].`;

/** The rules as a prompt that a person inserts. */
export function rulesFor(task: string | undefined): string {
  const begin = task === undefined ? '' : `\n\nTask: ${task}`;
  return `Use the tools of Shellfleet for every command, by these rules.\n\n${INSTRUCTIONS}${begin}`;
}
