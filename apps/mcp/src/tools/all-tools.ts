import { cancelTool, writeStdin } from './command-tools.ts';
import type { AddTool } from './define-tool.ts';
import { exec } from './exec.ts';
import { listFiles, readFile, writeFile } from './file-tools.ts';
import { callToolTool, listToolsTool } from './fleet-tools.ts';
import { poll } from './poll.ts';
import { restartSession, sessionInfo } from './session-tools.ts';

/** The tools of the server, in the order in which clients list them. */
export const ALL_TOOLS: readonly AddTool[] = [
  ...[exec, poll, writeStdin, cancelTool, restartSession, sessionInfo],
  ...[readFile, writeFile, listFiles, listToolsTool, callToolTool],
];
