import { pino } from 'pino';

export { ANYONE_SUBMITS, createAdmission, type Rules } from '../src/admission/create-admission.ts';
export { type FakeSandbox, FakeSandboxes } from './fake-sandbox.ts';
export const SILENT = pino({ level: 'silent' });
