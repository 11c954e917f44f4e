declare module 'undici/lib/dispatcher/client.js' {
  /** The package has types for its index alone. */
  export { Client as default } from 'undici';
}
