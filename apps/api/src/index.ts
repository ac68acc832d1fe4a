export { type ApiConfig, ApiConfigError, readApiConfig } from './config/config.ts';
export { API_SETTINGS } from './config/settings.ts';
export { type ApiServer, createServer, type ServerDeps } from './serve.ts';
export { startApi } from './start-api.ts';
