import { pino } from 'pino';

export { ANYONE_SUBMITS, createAdmission, type Rules } from '../src/admission/create-admission.ts';
export { decideByRules } from '../src/admission/decide-by-rules.ts';
export { auditAnswers } from '../src/approvals/audit-answers.ts';
export { HostApprovals } from '../src/approvals/host-approvals.ts';
export { openAudit } from '../src/audit/file-audit.ts';
export { lockDirectory } from '../src/host/directory-lock.ts';
export { HostMemory } from '../src/host/host-memory.ts';
export { joinOwnFleet } from '../src/lease/own-fleet.ts';
export { RecentLines } from '../src/log/recent-lines.ts';
export { MetricsRegistry } from '../src/metrics/metrics-registry.ts';
export { createWorkerMetrics } from '../src/metrics/worker-metrics.ts';
export type { WiderSandbox } from '../src/run/wider-sandbox.ts';
export { KeptSandboxes } from '../src/sandbox/kept-sandboxes.ts';
export { DENIED, type RunScript } from './fake-keeper.ts';
export { type FakeSandbox, FakeSandboxes } from './fake-sandbox.ts';
export const logErrorsInto = (lines: string[]) => pino({ level: 'error' }, { write: (line) => void lines.push(line) });
export { startWebhookReceiver, type WebhookReceiver } from './webhook-receiver.ts';
