export { NoiseResponder } from './noise-responder.ts';
export { privateKeyFrom } from './private-key.ts';
