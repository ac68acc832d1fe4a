export type { StdioIdentity } from './connections/stdio-connection.ts';
export { serveMcpOverStdio } from './serve-stdio.ts';
export type { McpSettings } from './settings.ts';
