import { meRoutes } from './me.ts';
import type { Route } from './route.ts';

/** All routes below `/v1`, one list for each area. */
export const ROUTES: readonly Route[] = [...meRoutes];
