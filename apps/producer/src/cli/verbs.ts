import type { Command } from 'commander';
import { registerApprovals } from './approvals/approvals.ts';
import { registerAttach } from './attach.ts';
import { registerAudit } from './audit.ts';
import { registerBatch } from './batch.ts';
import { registerCancel } from './cancel.ts';
import { registerClose } from './close.ts';
import { registerCompletion } from './completion/completion.ts';
import type { Context } from './context.ts';
import { registerCp } from './cp.ts';
import { registerDoctor } from './doctor.ts';
import { registerDown } from './down.ts';
import { registerExec } from './exec.ts';
import { registerHosts } from './hosts.ts';
import { registerLogs } from './logs.ts';
import { registerPolicy } from './policy.ts';
import { registerPs } from './ps.ts';
import { registerQueue } from './queue.ts';
import { registerRestart } from './restart.ts';
import { registerRun } from './run.ts';
import { registerTools } from './tools.ts';
import { registerUp } from './up.ts';
import { registerWait } from './wait.ts';
import { registerWorker } from './worker.ts';

/** Adds one verb to the program. Each verb is a file of its own, and is in the list below. */
export type RegisterVerb = (program: Command, context: Context) => void;

/** In the order and groups of the help. */
export const verbs: Readonly<Record<string, readonly RegisterVerb[]>> = {
  'Sessions:': [registerExec, registerRun, registerAttach, registerPs, registerCp, registerRestart, registerClose],
  'Commands:': [registerLogs, registerWait, registerCancel, registerQueue, registerApprovals, registerBatch],
  'The fleet:': [registerHosts, registerAudit, registerTools, registerPolicy, registerWorker],
  'This machine:': [registerUp, registerDown, registerDoctor, registerCompletion],
};
