import type { Command } from 'commander';
import type { Context } from './context.ts';

/** Adds one verb to the program. */
type RegisterVerb = (program: Command, context: Context) => void;

/** Verbs by the title of their group. */
export type VerbGroups = readonly (readonly [title: string, readonly RegisterVerb[]])[];

/** Verbs in the order and groups of the help. A verb is loaded when it is called, which makes short calls faster. */
const verbs: Readonly<Record<string, Readonly<Record<string, () => Promise<RegisterVerb>>>>> = {
  'Sessions:': {
    exec: async () => (await import('./exec.ts')).registerExec,
    run: async () => (await import('./run.ts')).registerRun,
    attach: async () => (await import('./attach.ts')).registerAttach,
    ps: async () => (await import('./ps.ts')).registerPs,
    cp: async () => (await import('./cp.ts')).registerCp,
    restart: async () => (await import('./restart.ts')).registerRestart,
    close: async () => (await import('./close.ts')).registerClose,
  },
  'Commands:': {
    logs: async () => (await import('./logs.ts')).registerLogs,
    wait: async () => (await import('./wait.ts')).registerWait,
    cancel: async () => (await import('./cancel.ts')).registerCancel,
    queue: async () => (await import('./queue.ts')).registerQueue,
    explain: async () => (await import('./explain/explain.ts')).registerExplain,
    approvals: async () => (await import('./approvals/approvals.ts')).registerApprovals,
    batch: async () => (await import('./batch.ts')).registerBatch,
  },
  'The fleet:': {
    top: async () => (await import('./top/top.ts')).registerTop,
    events: async () => (await import('./events.ts')).registerEvents,
    hosts: async () => (await import('./hosts.ts')).registerHosts,
    config: async () => (await import('./fleet-configuration.ts')).registerConfig,
    tenants: async () => (await import('./tenants.ts')).registerTenants,
    keys: async () => (await import('./keys.ts')).registerKeys,
    images: async () => (await import('./images.ts')).registerImages,
    audit: async () => (await import('./audit.ts')).registerAudit,
    tools: async () => (await import('./tools.ts')).registerTools,
    rules: async () => (await import('./rules.ts')).registerRules,
    worker: async () => (await import('./worker.ts')).registerWorker,
    serve: async () => (await import('./serve.ts')).registerServe,
    mcp: async () => (await import('./mcp.ts')).registerMcp,
  },
  'This machine:': {
    up: async () => (await import('./up.ts')).registerUp,
    down: async () => (await import('./down.ts')).registerDown,
    prune: async () => (await import('./prune.ts')).registerPrune,
    doctor: async () => (await import('./doctor.ts')).registerDoctor,
    'support-bundle': async () => (await import('./support-bundle.ts')).registerSupportBundle,
    completion: async () => (await import('./completion/completion.ts')).registerCompletion,
  },
};

/** Tells whether a word names a verb. */
export function isVerb(word: string): boolean {
  return Object.values(verbs).some((group) => Object.hasOwn(group, word));
}

/** Loads a verb. Loads all verbs if the name is missing or unknown, for help, completion and corrections. */
export function loadVerbs(name?: string): Promise<VerbGroups> {
  for (const [title, group] of Object.entries(verbs)) {
    const load = name !== undefined && Object.hasOwn(group, name) ? group[name] : undefined;
    if (load !== undefined) return Promise.all([loadGroup(title, [load])]);
  }
  return Promise.all(Object.entries(verbs).map(([title, group]) => loadGroup(title, Object.values(group))));
}

async function loadGroup(title: string, loads: readonly (() => Promise<RegisterVerb>)[]) {
  return [title, await Promise.all(loads.map((load) => load()))] as const;
}
