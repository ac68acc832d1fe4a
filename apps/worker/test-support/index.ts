export { ANYONE_SUBMITS, createAdmission, type Rules } from '../src/admission/create-admission.ts';
export { type FakeSandbox, FakeSandboxes } from './fake-sandbox.ts';
