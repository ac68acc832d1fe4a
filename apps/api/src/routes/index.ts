import { approvalRoutes } from './approvals.ts';
import { batchRoutes } from './batches.ts';
import { commandRoutes } from './commands.ts';
import { eventRoutes } from './events.ts';
import { fileRoutes } from './files.ts';
import { fleetRoutes } from './fleet.ts';
import { hostRoutes } from './hosts.ts';
import { meRoutes } from './me.ts';
import type { Route } from './route.ts';
import { ruleRoutes } from './rules.ts';
import { runRoutes } from './run.ts';
import { sessionRoutes } from './sessions.ts';
import { terminalRoutes } from './terminal.ts';
import { toolRoutes } from './tools.ts';

/** All routes below `/v1`, one list for each area. */
export const ROUTES: readonly Route[] = [
  ...[...meRoutes, ...sessionRoutes, ...commandRoutes, ...runRoutes, ...eventRoutes, ...fileRoutes],
  ...[
    ...terminalRoutes,
    ...approvalRoutes,
    ...batchRoutes,
    ...ruleRoutes,
    ...toolRoutes,
    ...hostRoutes,
    ...fleetRoutes,
  ],
];
