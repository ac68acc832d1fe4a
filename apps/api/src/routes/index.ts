import { commandRoutes } from './commands.ts';
import { eventRoutes } from './events.ts';
import { meRoutes } from './me.ts';
import type { Route } from './route.ts';
import { runRoutes } from './run.ts';
import { sessionRoutes } from './sessions.ts';

/** All routes below `/v1`, one list for each area. */
export const ROUTES: readonly Route[] = [...meRoutes, ...sessionRoutes, ...commandRoutes, ...runRoutes, ...eventRoutes];
