export { writeAlertTests } from './alert-cases.ts';
export { ALERTS } from './alerts.ts';
export { ALERTS_FILE } from './files.ts';
export { ROWS } from './panels.ts';
