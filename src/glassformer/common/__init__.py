"""What every room may use: errors, files, reports, devices, strings and the version."""
