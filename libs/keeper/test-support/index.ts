export { type KeeperSide, ListeningKeeper, type ListeningKeeperOptions, TOKEN_OVER_TCP } from './listening-keeper.ts';
export { forgedFrame, forgedOpening, NoiseForger } from './noise-forger.ts';
export { NoiseResponder } from './noise-responder.ts';
export { privateKeyFrom } from './private-key.ts';
