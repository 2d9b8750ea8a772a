"""What Deixis is made of: hashes of what CI installs, licences of all dependencies, a bill of materials."""
