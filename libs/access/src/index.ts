export { type Access, openAccess } from './access.ts';
export type { AccessLog } from './access-log.ts';
export type { Principal } from './principal.ts';
export type { Validity } from './validities.ts';
