import { fileURLToPath } from 'node:url';
import { writeAlerts } from './alerts.ts';
import { writeDashboard } from './dashboard.ts';

const pathOf = (name: string) => fileURLToPath(new URL(`../${name}`, import.meta.url));

const DASHBOARD_FILE = pathOf('dashboard.json');
/** Rules for Prometheus. */
export const ALERTS_FILE = pathOf('alerts.yaml');

/** Returns the committed files, as they should be. */
export const writeFiles = (): { path: string; text: string }[] => [
  { path: DASHBOARD_FILE, text: writeDashboard() },
  { path: ALERTS_FILE, text: writeAlerts() },
];
