import { type ResolvedSessionSpec, resolveSandbox } from '@shellfleet/protocol';

/** Name of the tool, as LangChain has it. */
export const SHELL_TOOL_NAME = 'shell';

const RULES = [
  'Runs a shell command in a session that stays open: directory, variables, functions and background processes of one command are there for the next.',
  'Before a command that depends on its directory, look where you are with `pwd` or `ls`, and make sure that parent directories exist.',
  'Prefer absolute paths, and quote paths with spaces, as in `cd "/data/my files"`.',
  'Join several commands with `&&` or `;` instead of line breaks.',
  'Do not change the directory without need, so that later commands find what they expect.',
  'Long output is cut, and a command that takes too long is ended.',
  'Give `restart` alone to replace a shell that no longer works by a fresh one.',
];

/** Description of a tool whose sessions are not known. */
export const SHELL_TOOL_DESCRIPTION = RULES.join(' ');

/** Returns the description of a tool, with what its sessions allow. */
export function describeShellTool(spec: ResolvedSessionSpec): string {
  const { commandTimeoutMs, output, approval } = spec;
  const seconds = commandTimeoutMs / 1_000;
  return [
    SHELL_TOOL_DESCRIPTION,
    `A command is ended after ${seconds} seconds, and at most ${output.maxLines} lines of each output stream are shown.`,
    ...describeSandbox(spec),
    ...(approval === undefined || approval === 'never' ? [] : ['Some commands wait until a person has allowed them.']),
  ].join(' ');
}

function describeSandbox(spec: ResolvedSessionSpec): string[] {
  const { mode, network, allowedHosts } = resolveSandbox(spec);
  const reach = {
    restricted: 'The network cannot be reached.',
    limited: `Of the network, only these hosts can be reached: ${allowedHosts.join(', ')}.`,
    full: '',
  }[network];
  const writes = mode === 'read-only' ? 'Only temporary files can be written.' : '';
  return [reach, writes].filter((sentence) => sentence !== '');
}
